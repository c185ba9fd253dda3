"""A normalized request without its content: counts and settings, never what the customer wrote."""

from collections.abc import Mapping
from typing import Any, Final

_CONTENT: Final = frozenset({"prompt", "negative_prompt", "modality"})
_FILES: Final = frozenset({"reference_images", "reference_videos", "reference_audios"})
_FRAMES: Final = frozenset({"first_frame", "last_frame"})


def facts_of(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each setting with its value; files as their number, since an address may say who somebody is."""
    return [(name, _told(name, value)) for name, value in sorted(request.items()) if name not in _CONTENT]


def _told(name: str, value: Any) -> str:
    if name in _FILES:
        return str(len(value))
    if name in _FRAMES:
        return "1" if value else "0"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
