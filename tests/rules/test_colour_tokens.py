"""The console's colours, computed from the tokens that the pages load: contrast in both themes."""

import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "static" / "css" / "tokens.css"
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS.read_text()
    )
}
HEALTH = ("healthy", "degraded", "circuit-open", "probing", "recovering", "disabled")
SURFACES = ("surface", "page")
GROUNDS = (*SURFACES, "sunken", "hover", "selected")
TEXT_PAIRS = [
    *((text, under) for text in ("text", "muted", "link") for under in GROUNDS),
    *((f"{state}-text", f"{state}-back") for state in HEALTH),
    *((text, f"{text}-back") for text in ("alarm", "notice")),
    *((text, back) for text in ("text", "muted", "link") for back in ("alarm-back", "notice-back")),
    ("alarm", "surface"),
    ("notice", "surface"),
    ("notice", "page"),
    ("on-accent", "accent"),
]
GRAPHIC_PAIRS = [
    *((state, under) for state in HEALTH for under in ("surface", f"{state}-back")),
    *((mark, under) for mark in ("border", "focus", "accent") for under in SURFACES),
    *((phase, "surface") for phase in ("phase-run", "phase-mark", "phase-doubt")),
]


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "under"), TEXT_PAIRS)
def test_v1_text_has_a_contrast_of_4_5(text: str, under: str, theme: int) -> None:
    assert contrast(TOKENS[text][theme], TOKENS[under][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "under"), GRAPHIC_PAIRS)
def test_v1_icons_borders_and_bars_have_a_contrast_of_3(mark: str, under: str, theme: int) -> None:
    assert contrast(TOKENS[mark][theme], TOKENS[under][theme]) >= 3.0
