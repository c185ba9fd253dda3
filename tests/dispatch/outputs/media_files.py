"""Small real media, and files that only pretend, made when they are needed."""

import io
import struct
import zipfile
import zlib
from pathlib import Path

import av
from PIL import Image

WIDTH, HEIGHT, FPS = 160, 96, 24


def video(
    path: Path,
    *,
    seconds: int = 2,
    codec: str = "libx264",
    container: str = "mp4",
    faststart: bool = False,
    audio: bool = False,
) -> Path:
    options = {"movflags": "+faststart"} if faststart else {}
    with av.open(str(path), "w", format=container, container_options=options) as output:
        stream = output.add_stream(codec, rate=FPS)
        assert isinstance(stream, av.VideoStream)
        if codec.startswith("libvpx"):
            stream.options = {"deadline": "realtime", "cpu-used": "8"}
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        sound = output.add_stream("aac", rate=48_000) if audio else None
        for number in range(seconds * FPS):
            picture = Image.effect_noise((WIDTH, HEIGHT), 80 + number).convert("RGB")
            frame = av.VideoFrame.from_image(picture).reformat(format="yuv420p")
            frame.pts = number
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
        if isinstance(sound, av.AudioStream):
            output.mux(sound.encode(_silence()))
            output.mux(sound.encode())
    return path


def sound(path: Path, codec: str, container: str, layout_format: str) -> Path:
    with av.open(str(path), "w", format=container) as output:
        stream = output.add_stream(codec, rate=48_000)
        assert isinstance(stream, av.AudioStream)
        for number in range(50):
            frame = _silence(layout_format)
            frame.pts = number * frame.samples
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return path


def image(path: Path, form: str) -> Path:
    Image.effect_noise((64, 48), 50).convert("RGB").save(path, form)
    return path


def png(width: int, height: int, idat: bytes, *, more: bytes = b"") -> bytes:
    """A PNG that says it is that big, with whatever compressed rows."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + more + _chunk(b"IDAT", idat) + _chunk(b"IEND", b"")


def text_bomb() -> bytes:
    """A PNG whose comment unpacks to 100 MB."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    rows = zlib.compress(b"\x00\x00\x00\x00")
    return png(1, 1, rows, more=_chunk(b"zTXt", b"Comment\x00\x00" + packed))


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("index.html", "<script>alert(1)</script>")
    return packed.getvalue()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _silence(layout_format: str = "fltp") -> av.AudioFrame:
    frame = av.AudioFrame(format=layout_format, layout="stereo", samples=1024)
    frame.sample_rate, frame.pts = 48_000, 0
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    return frame


def playlist(target: str) -> bytes:
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n".encode()
