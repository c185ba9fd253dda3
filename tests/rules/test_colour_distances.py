"""The six colours of health stay apart for every eye: CIEDE2000, colour blindness by Machado 2009."""

from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest

from tests.rules.test_colour_tokens import HEALTH, TOKENS

type Vector = tuple[float, float, float]
type Matrix = tuple[Vector, Vector, Vector]

EYES: dict[str, Matrix] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_TO_XYZ: Matrix = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE: Vector = (0.95047, 1.0, 1.08883)


def times(matrix: Matrix, vector: Vector) -> Vector:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return first, second, third


def linear(colour: str) -> Vector:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return _linear(red), _linear(green), _linear(blue)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def lab(colour: str, eye: Matrix) -> Vector:
    seen = times(eye, linear(colour))
    red, green, blue = (min(1.0, max(0.0, channel)) for channel in seen)
    x, y, z = (
        _lab(value / white) for value, white in zip(times(_TO_XYZ, (red, green, blue)), _WHITE, strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _lab(value: float) -> float:
    return value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116


def distance(one: Vector, other: Vector) -> float:
    """CIEDE2000, all weights 1."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1 + (1 - sqrt(mean**7 / (mean**7 + 25**7))) / 2
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = hypot(a1, b1), hypot(a2, b2)
    h1, h2 = degrees(atan2(b1, a1)) % 360, degrees(atan2(b2, a2)) % 360
    turn = h2 - h1
    turn -= 360 * round(turn / 360) if c1 * c2 else turn
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    at = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    weight = (
        1
        - 0.17 * cos(radians(at - 30))
        + 0.24 * cos(radians(2 * at))
        + 0.32 * cos(radians(3 * at + 6))
        - 0.20 * cos(radians(4 * at - 63))
    )
    of_light = 1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2)
    of_chroma, of_hue = 1 + 0.045 * chroma, 1 + 0.015 * chroma * weight
    bend = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(60 * exp(-(((at - 275) / 25) ** 2))))
    parts = (l2 - l1) / of_light, (c2 - c1) / of_chroma, hue / of_hue
    return sqrt(sum(part**2 for part in parts) + bend * parts[1] * parts[2])


def test_the_distance_is_that_of_the_published_examples() -> None:
    examples = [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
    ]
    for one, other, expected in examples:
        assert distance(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_v2_two_colours_of_health_are_15_apart_at_least(eye: str, theme: int) -> None:
    seen = {state: lab(TOKENS[state][theme], EYES[eye]) for state in HEALTH}
    close = {(one, other): distance(seen[one], seen[other]) for one, other in combinations(HEALTH, 2)}
    assert min(close.values()) >= 15, min(close, key=close.__getitem__)
