"""The numbers of a HealthPolicy: parsed once, with defaults, pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


class ParametersError(ValueError):
    """A parameter is unknown or out of range; the message names it and the range."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Counts in pieces of evidence, spans in seconds."""

    degrade_after: int = 2
    open_after: int = 5
    rate_limit: float = 0.5  # of the samples; above it, not at it, the circuit opens
    rate_samples: int = 20
    rate_window_s: int = 120
    restore_after: int = 3
    channel_network_open_after: int = 2
    correlation_supplies: int = 2
    correlation_window_s: int = 60
    cooldowns_s: tuple[int, ...] = (30, 60, 120, 300, 600)  # by openings in a row; the last one repeats


NAMES = tuple(field.name for field in fields(Parameters))


def parse_parameters(*layers: Mapping[str, Any]) -> Parameters:
    """The defaults overlaid by `layers`, the later the stronger: installation, then channel or supply.

    Raises ParametersError where a parameter is unknown or has a value it can't have."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    unknown = sorted(set(merged) - set(NAMES))
    if unknown:
        raise ParametersError(f"{unknown[0]}: no such parameter; known are {', '.join(NAMES)}")
    return Parameters(**{name: _parsed(name, value) for name, value in merged.items()})


def _parsed(name: str, value: Any) -> Any:
    if name == "rate_limit":
        return _share(name, value)
    if name == "cooldowns_s":
        return _ladder(name, value)
    return _count(name, value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 86_400:
        raise ParametersError(f"{name}: {value!r} is not a whole number from 1 to 86 400")
    return value


def _share(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ParametersError(f"{name}: {value!r} is not a number from 0 to 1")
    return float(value)


def _ladder(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ParametersError(f"{name}: {value!r} is not a list of seconds")
    return tuple(_count(name, step) for step in value)
