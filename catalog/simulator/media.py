"""Small real media: a playable MP4 or a picture of exactly the size and duration that was asked for."""

import io
import math
from array import array
from functools import lru_cache
from typing import Any

import av
from PIL import Image, ImageDraw

_FRAMES_PER_SECOND = 8  # what is shown stands still; few frames keep it small and quick to make
_SAMPLES_PER_SECOND = 16_000
_SAMPLES_PER_FRAME = 1024
_WAVES_PER_FRAME, _TONE_LOUDNESS = 14, 2000
_BARS = ("#c0c0c0", "#c0c000", "#00c0c0", "#00c000", "#c000c0", "#c00000", "#0000c0")


@lru_cache(maxsize=64)
def video(duration_s: int, width: int, height: int, audio: bool = False) -> bytes:
    """An MP4 with H.264, and AAC where there is sound. Width and height are even."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        picture: Any = container.add_stream("libx264", rate=_FRAMES_PER_SECOND)
        picture.width, picture.height, picture.pix_fmt = width, height, "yuv420p"
        picture.options = {"preset": "ultrafast", "crf": "40", "threads": "1"}
        sound: Any = container.add_stream("aac", rate=_SAMPLES_PER_SECOND, layout="mono") if audio else None
        _draw_frames(container, picture, duration_s, _pattern(width, height, f"{duration_s} s"))
        if sound is not None:
            _draw_tone(container, sound, duration_s)
    return file.getvalue()


def _draw_frames(container: Any, stream: Any, duration_s: int, pattern: Image.Image) -> None:
    frame = av.VideoFrame.from_image(pattern).reformat(format="yuv420p")
    for number in range(duration_s * _FRAMES_PER_SECOND):
        frame.pts, frame.time_base = number, stream.codec_context.time_base
        container.mux(stream.encode(frame))
    container.mux(stream.encode())


def _draw_tone(container: Any, stream: Any, duration_s: int) -> None:
    tone = _tone()
    whole_frames = duration_s * _SAMPLES_PER_SECOND // _SAMPLES_PER_FRAME  # not longer than the pictures
    for first in range(0, whole_frames * _SAMPLES_PER_FRAME, _SAMPLES_PER_FRAME):
        frame = av.AudioFrame(format="s16", layout="mono", samples=_SAMPLES_PER_FRAME)
        frame.sample_rate, frame.pts = _SAMPLES_PER_SECOND, first
        frame.planes[0].update(tone)
        container.mux(stream.encode(frame))
    container.mux(stream.encode())


def _tone() -> bytes:
    """Whole waves, so that every frame is the same and joins the next."""
    angle = 2 * math.pi * _WAVES_PER_FRAME / _SAMPLES_PER_FRAME
    return array(
        "h", (int(_TONE_LOUDNESS * math.sin(angle * sample)) for sample in range(_SAMPLES_PER_FRAME))
    ).tobytes()


@lru_cache(maxsize=32)
def picture(width: int, height: int, kind: str = "jpeg") -> bytes:
    """A JPEG or a PNG."""
    file = io.BytesIO()
    _pattern(width, height, f"{width}x{height}").save(file, kind, quality=60, compress_level=1)
    return file.getvalue()


def _pattern(width: int, height: int, label: str) -> Image.Image:
    """Colour bars, so that somebody who looks sees at once that nothing was generated."""
    image = Image.new("RGB", (width, height))
    draw = ImageDraw.Draw(image)
    for index, colour in enumerate(_BARS):
        left, right = width * index // len(_BARS), width * (index + 1) // len(_BARS)
        draw.rectangle((left, 0, right, height), fill=colour)
    draw.rectangle((0, height * 3 // 4, width, height), fill="#101010")
    draw.text(
        (width // 20, height * 4 // 5), f"simulated  {label}", fill="#f0f0f0", font_size=max(12, height // 12)
    )
    return image


def size_of(resolution: str, ratio: str) -> tuple[int, int]:
    """Width and height in pixels, even, for such as ("720p", "16:9"); the number is the shorter side."""
    short = int(resolution.rstrip("p"))
    across, down = (int(side) for side in ("16:9" if ratio == "adaptive" else ratio).split(":"))
    longer = round(short * max(across, down) / min(across, down) / 2) * 2
    return (longer, short) if across >= down else (short, longer)
