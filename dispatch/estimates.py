"""What a job costs in the fair queue: milliseconds of a provider's time, estimated at admission. Pure."""

from collections.abc import Mapping
from typing import Final

from catalog.shape import Shape, VideoShape

IMAGE_MS: Final = 15_000  # an image, where nothing is known
# A second of video, by resolution, where nothing is known.
_MS_PER_SECOND: Final[Mapping[str, int]] = {"480p": 6_000, "720p": 10_000, "1080p": 16_000, "4k": 40_000}
_USUAL_MS_PER_SECOND: Final = 10_000
_USUAL_DURATION_S: Final = 5
MOST_MS: Final = 3_600_000  # the fairness bound holds for the largest job, so there is one
LEAST_SAMPLES: Final = 5  # ended attempts from which a median is believed


def estimated_ms(shape: Shape, known_ms: int | None) -> int:
    """Of the whole request; `known_ms`: the median of one result of its kind, where it was measured."""
    one = known_ms if known_ms is not None else _guessed_ms(shape)
    return max(1, min(one * shape.count, MOST_MS))


def _guessed_ms(shape: Shape) -> int:
    if not isinstance(shape, VideoShape):
        return IMAGE_MS
    per_second = _MS_PER_SECOND.get(shape.resolution or "", _USUAL_MS_PER_SECOND)
    return round(float(shape.duration_s or _USUAL_DURATION_S) * per_second)


def kind_of_work(shape: Shape) -> tuple[str, str, float]:
    """Mode, resolution or size, and seconds (0 of an image): what medians are kept by."""
    if isinstance(shape, VideoShape):
        return shape.mode, shape.resolution or "", float(shape.duration_s or 0)
    return shape.mode, shape.size or "", 0.0
