"""Decodes files under hard bounds, each in a process of its own, and writes what they are as JSON objects.

Run by `verifiers.py`, alone: it imports neither Django nor anything of ours. By the time a byte is parsed the
process can open no file and no socket, start no process, and (if it was root) is nobody."""

import gc
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, BinaryIO, NoReturn

import av
import av.subtitles.codeccontext
import av.subtitles.stream
from av.container import InputContainer
from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

NOBODY = 65_534
REPORT_BYTES = 65_536
# Decoders with a history of their own are left out: what providers deliver and customers upload is here.
CODECS = (
    *("h264", "hevc", "libdav1d", "av1", "vp8", "vp9", "libvpx", "libvpx-vp9", "mpeg4", "prores", "mjpeg"),
    *("aac", "mp3float", "mp3", "opus", "libopus", "vorbis", "flac", "alac", "ac3", "eac3"),
    *("pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_u8", "pcm_s16be"),
)
# PyAV and Pillow import these at first use; after `lock_in` nothing can be opened, not even a module.
IMPORTED_EARLY = (
    *(av.subtitles.codeccontext, av.subtitles.stream),
    *(GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin),
)


class Unusable(Exception):
    """The file is not what it claims; the argument is the stable reason."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """As in `limits.MediaLimits`, which this process does not import."""

    max_pixels: int
    max_duration_ms: int
    cpu_s: int
    memory_bytes: int


def main() -> None:
    """Standard input is a socket: an order comes with two descriptors, the file and where its report goes,
    and is answered with how the child ended. Ends with the socket."""
    orders = socket.socket(fileno=0)
    ended = _told_of_ends()
    Image.preinit()
    gc.freeze()  # what is imported stays shared with the children
    while True:
        message, descriptors, *_ = socket.recv_fds(orders, 65_536, 2)
        if len(descriptors) < 2:
            return
        order = json.loads(message)
        child = os.fork()
        if not child:
            examine(order, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        orders.sendall(end_of(child, order["wall_s"], orders, ended).encode())


def _told_of_ends() -> int:
    """A descriptor that can be read from when a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, _heard)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Without a handler no signal is told of."""


def end_of(child: int, wall_s: float, orders: socket.socket, ended: int) -> str:
    """Its exit code, or `timeout` after it was killed. Nobody waits for one whose orders came to an end."""
    ends_at_s = time.monotonic() + wall_s
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return str(os.waitstatus_to_exitcode(status))
        left_s = ends_at_s - time.monotonic()
        told, _, _ = select.select([orders.fileno(), ended], [], [], max(left_s, 0))
        if ended in told:
            os.read(ended, 64)
        elif told or left_s <= 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "timeout"


def examine(order: Mapping[str, Any], file_descriptor: int, report_descriptor: int) -> NoReturn:
    """The whole life of a child: writes `{"width", "height", "duration_ms", "has_audio"}` or
    `{"invalid": reason}`. One that breaks, as without memory, ends without a report."""
    try:
        os.dup2(file_descriptor, 0)
        os.dup2(report_descriptor, 1)
        signal.set_wakeup_fd(-1)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        bounds = Bounds(**{name: order[name] for name in Bounds.__dataclass_fields__})
        file = open(0, "rb", closefd=False)  # noqa: SIM115 -- standard input, for the whole life of the process
        size = os.fstat(0).st_size
        Image.MAX_IMAGE_PIXELS = bounds.max_pixels
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        lock_in(bounds)
        print(json.dumps(report_on(file, size, order["kind"], order["parser"], bounds)))
        sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(1)


def lock_in(bounds: Bounds) -> None:
    """No way back: hard limits, and no privileges left."""
    for limit, value in (
        (resource.RLIMIT_CPU, bounds.cpu_s),
        (resource.RLIMIT_AS, bounds.memory_bytes),
        (resource.RLIMIT_FSIZE, REPORT_BYTES),
        (resource.RLIMIT_CORE, 0),
        # Descriptors 0 to 2 exist; a playlist that wants /etc/passwd or a socket gets EMFILE.
        (resource.RLIMIT_NOFILE, 3),
    ):
        resource.setrlimit(limit, (value, value))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def report_on(file: BinaryIO, size: int, kind: str, parser: str, bounds: Bounds) -> dict[str, Any]:
    """Decode with the one parser that the magic bytes name."""
    try:
        if kind == "image":
            return image_report(file, size, parser)
        if parser == "mov":
            check_boxes(file, size)
        return stream_report(file, kind, parser, bounds)
    except Unusable as error:
        return {"invalid": str(error)}


def image_report(file: BinaryIO, size: int, parser: str) -> dict[str, Any]:
    try:
        with Image.open(file, formats=[parser]) as image:
            image.load()
            width, height = image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Unusable("too_many_pixels") from error
    except Exception as error:
        # Pillow's plug-ins raise whatever the broken byte leads to: OSError, SyntaxError, struct.error …
        raise Unusable("truncated" if "truncated" in str(error) else "undecodable") from error
    if parser == "PNG":
        check_png_end(file, size)
    return {"width": width, "height": height}


def stream_report(file: BinaryIO, kind: str, parser: str, bounds: Bounds) -> dict[str, Any]:
    try:
        with open_container(file, parser, bounds) as container:
            return container_report(container, kind, bounds)
    except (av.FFmpegError, ValueError, OverflowError) as error:
        raise Unusable("undecodable") from error


def open_container(file: BinaryIO, parser: str, bounds: Bounds) -> InputContainer:
    """The demuxer is forced; nested inputs (HLS, concat, references to other files) find no protocol."""
    options = {
        "protocol_whitelist": "none",
        "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mp3,wav",
        "codec_whitelist": ",".join(CODECS),
        "max_pixels": str(bounds.max_pixels),
        "threads": "1",
    }
    return av.open(file, mode="r", format=parser, options=options)


def container_report(container: InputContainer, kind: str, bounds: Bounds) -> dict[str, Any]:
    streams = container.streams.video if kind == "video" else container.streams.audio
    if not streams:
        raise Unusable("undecodable")
    stream = streams[0]
    if isinstance(stream, av.VideoStream) and stream.width * stream.height > bounds.max_pixels:
        raise Unusable("too_many_pixels")
    declared_ms = None if container.duration is None else container.duration // 1000
    if declared_ms is not None and declared_ms > bounds.max_duration_ms:
        raise Unusable("too_long")
    duration_ms, end_ms = decode_and_measure(container, stream, bounds)
    # Others check the size of their boxes (mov) or guess the length from the bit rate (mp3).
    if container.format.name.startswith("matroska") and declared_ms is not None:
        check_nothing_is_missing(declared_ms, end_ms)
    report: dict[str, Any] = {"duration_ms": duration_ms, "has_audio": bool(container.streams.audio)}
    if isinstance(stream, av.VideoStream):
        report |= {"width": stream.width, "height": stream.height}
    return report


def decode_and_measure(container: InputContainer, stream: Any, bounds: Bounds) -> tuple[int, int]:
    """Decode the first frame, then walk all packets: the stream's length and the end of all, in ms."""
    stream.codec_context.thread_count = 1
    begins_ms: dict[int, float] = {}
    ends_ms: dict[int, float] = {}
    decoded = False
    for packet in container.demux():
        index = packet.stream_index
        if index == stream.index and not decoded:
            decoded = bool(packet.decode())
        if packet.pts is None or packet.time_base is None:
            continue
        unit_ms = float(packet.time_base * 1000)
        begins_ms[index] = min(begins_ms.get(index, math.inf), packet.pts * unit_ms)
        ends_ms[index] = max(ends_ms.get(index, -math.inf), (packet.pts + (packet.duration or 0)) * unit_ms)
        if ends_ms[index] - begins_ms[index] > bounds.max_duration_ms:
            raise Unusable("too_long")
    length_ms = ends_ms.get(stream.index, 0) - begins_ms.get(stream.index, 0)
    if not decoded or length_ms <= 0:
        raise Unusable("undecodable")
    return round(length_ms), round(max(ends_ms.values()))


def check_nothing_is_missing(declared_ms: int, end_ms: int) -> None:
    """The last packet may carry no duration, so a frame or two of slack."""
    if end_ms + max(200, declared_ms // 50) < declared_ms:
        raise Unusable("truncated")


def check_boxes(file: BinaryIO, size: int) -> None:
    """MP4 and QuickTime are boxes from the first byte to the last: nothing cut off, nothing glued on."""
    reached = 0
    for box_size in box_sizes(file, size):
        reached += box_size
        if reached > size:
            raise Unusable("truncated")
    if reached < size:
        raise Unusable("trailing_data")
    file.seek(0)


def box_sizes(file: BinaryIO, size: int) -> Iterator[int]:
    at = 0
    while size - at >= 8:
        file.seek(at)
        header = file.read(16)
        box_size = struct.unpack(">I", header[:4])[0]
        if box_size == 1 and len(header) == 16:
            box_size = struct.unpack(">Q", header[8:])[0]
        elif box_size == 0:
            box_size = size - at  # the last box: up to the end
        if box_size < 8:
            raise Unusable("trailing_data")
        yield box_size
        at += box_size
    if at < size:
        file.seek(at)
        if not any(file.read(size - at)):
            yield size - at  # QuickTime's closing zeros


def check_png_end(file: BinaryIO, size: int) -> None:
    """A PNG ends at IEND; an archive behind it would make the file two things at once."""
    file.seek(8)
    while True:
        header = file.read(8)
        if len(header) < 8:
            raise Unusable("truncated")
        length, name = struct.unpack(">I4s", header)
        file.seek(length + 4, os.SEEK_CUR)
        if name == b"IEND":
            break
    if file.tell() != size:
        raise Unusable("trailing_data")


if __name__ == "__main__":
    main()
