"""The console's icons: 16 × 16 line drawings, told apart by shape in greyscale. Always beside a word."""

from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_RING = '<circle cx="8" cy="8" r="6"/>'
_OCTAGON = '<path class="solid" d="M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z"/>'
_PIE = {
    25: '<path class="solid" d="M8 8V2a6 6 0 0 1 6 6z"/>',
    50: '<path class="solid" d="M8 2a6 6 0 0 1 0 12z"/>',
    75: '<path class="solid" d="M8 8V2a6 6 0 1 1-6 6z"/>',
}
_DRAWINGS: Final = {
    # health: eight shapes
    "healthy": '<path d="M2.5 8.5l3.5 3.5 7.5-8"/>',
    "degraded": '<path class="solid" d="M8 2l6.5 12h-13z"/>',
    "circuit_open": _OCTAGON + '<path class="hole" d="M5 8h6"/>',
    "probing": _RING + '<circle class="solid" cx="8" cy="8" r="2.4"/>',
    "recovering-25": _RING + _PIE[25],
    "recovering-50": _RING + _PIE[50],
    "recovering-75": _RING + _PIE[75],
    "disabled": _RING + '<path d="M4 12l8-8"/>',
    # work
    "waiting": _RING + '<path d="M8 4.5V8l2.5 1.5"/>',
    "arrow": '<path d="M2.5 8h10M9 4.5L12.5 8 9 11.5"/>',
    "running": '<path class="solid" d="M4.5 2.8v10.4L13 8z"/>',
    "download": '<path d="M8 2v8M4.5 7L8 10.5 11.5 7M3 13.5h10"/>',
    "stop": _RING + '<path d="M6 6h4v4H6z"/>',
    "tick": '<path d="M2.5 8.5l3.5 3.5 7.5-8"/>',
    "cross": '<path d="M3.5 3.5l9 9M12.5 3.5l-9 9"/>',
    "crossed": _RING + '<path d="M4 12l8-8"/>',
    "expired": '<path d="M4 2h8M4 14h8M4.5 2c0 4 7 4 7 12M11.5 2c0 4-7 4-7 12"/>',
    "question": '<path d="M5 6a3 3 0 1 1 4.2 2.7C8.3 9.1 8 9.5 8 10.5M8 13.2v.1"/>',
    # public models: bars that fill
    "bars-0": '<path d="M2.5 9.5h2.5v4H2.5zM6.8 6.5h2.4v7H6.8zM11 2.5h2.5v11H11z"/>',
    "bars-3": '<path class="solid" d="M2 9h3.5v5H2zM6.2 6h3.6v8H6.2zM10.5 2H14v12h-3.5z"/>',
    "bars-2": '<path class="solid" d="M2 9h3.5v5H2zM6.2 6h3.6v8H6.2z"/><path d="M11 2.5h2.5v11H11z"/>',
    # alerts
    "critical": _OCTAGON + '<path class="hole" d="M8 4.5v4M8 11v.2"/>',
    "warning": '<path d="M8 2l6.5 12h-13zM8 6.5v3.5M8 12v.1"/>',
    "info": _RING + '<path d="M8 7.5v4M8 4.8v.1"/>',
    "menu": '<path d="M2 4h12M2 8h12M2 12h12"/>',
}


def icon(name: str) -> SafeString:
    drawing = mark_safe(_DRAWINGS[name])  # noqa: S308 - constant, from above
    return format_html('<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', drawing)


def tag(text: str, drawing: str, tone: str, state: str) -> SafeString:
    """A state of something that is worked on: drawing and word; the colours of health are not for it."""
    return format_html(
        '<span class="tag" data-tone="{}" data-state="{}">{}<span>{}</span></span>',
        tone,
        state,
        icon(drawing),
        text,
    )
