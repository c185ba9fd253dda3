"""What all rows of tests have in common: a moment, two capabilities and two requests."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from factory.django import DjangoModelFactory

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
VIDEO_CAPABILITY = {
    "modes": ["text_to_video", "image_to_video"],
    "durations_s": {"min": 4, "max": 15},
    "resolutions": ["480p", "720p", "1080p"],
    "aspect_ratios": ["16:9", "9:16", "1:1"],
    "max_images": 9,
    "max_videos": 3,
    "max_audios": 3,
    "audio": True,
    "constraints": [],
}
IMAGE_CAPABILITY = {
    "modes": ["text_to_image"],
    "sizes": ["1024x1024", "2048x2048"],
    "max_n": 4,
    "max_images": 4,
    "constraints": [],
}
VIDEO_REQUEST = {
    "mode": "text_to_video",
    "prompt": "A lighthouse in a storm",
    "duration_s": 5,
    "resolution": "1080p",
    "aspect_ratio": "16:9",
    "audio": False,
}
IMAGE_REQUEST = {"mode": "text_to_image", "prompt": "A lighthouse in a storm", "size": "1024x1024", "n": 1}


class Rows[M: models.Model](DjangoModelFactory[M]):
    """A factory whose call is typed as the row that it makes."""

    class Meta:
        abstract = True

    if TYPE_CHECKING:

        def __new__(cls, **values: Any) -> M: ...  # type: ignore[misc]
