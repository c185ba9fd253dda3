"""The parameters of a dispatch policy: parsed once, with defaults, pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from catalog.currency import is_currency

ORDERS = ("stable_first", "cost_first", "manual_priority")
SHADOW_ORDERS = (*ORDERS, "weighted")
PRIORITY_MAX = 1_000_000  # of a binding, for manual_priority


class PolicyError(ValueError):
    """A parameter is unknown or out of range; the message names it and the range."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a public model is routed and executed by; spans in seconds, money in micros of `currency`."""

    order: str = "stable_first"
    currency: str = "USD"
    min_samples: int = 20
    success_band: Decimal = Decimal("0.02")
    stable_cost_multiplier_limit: Decimal = Decimal("1.5")
    fallback_cost_multiplier_limit: Decimal = Decimal("2.0")
    max_cost_micros: int | None = None
    spill_when_saturated: bool = False
    probe_every: int = 20  # selections; 0 = never
    stats_window_s: int = 86_400
    shadow_order: str | None = None
    max_attempts: int = 2
    dispatch_deadline_s: int = 1_200
    max_execution_s: int = 3_600
    uncertain_deadline_s: int = 1_800
    quarantine_s: int = 900
    max_retry_after_wait_s: int = 30
    sync_total_timeout_s: int = 120
    max_platform_loss_micros: int | None = None
    max_cost_per_success_micros: int | None = None  # above it an alert is raised; it stops nothing


_AT_LEAST = {
    "min_samples": 1,
    "max_cost_micros": 0,
    "probe_every": 0,
    "stats_window_s": 60,
    "dispatch_deadline_s": 1,
    "max_execution_s": 1,
    "uncertain_deadline_s": 1,
    "quarantine_s": 0,
    "max_retry_after_wait_s": 0,
    "sync_total_timeout_s": 1,
    "max_platform_loss_micros": 0,
    "max_cost_per_success_micros": 0,
}

_MAY_BE_ABSENT = ("max_cost_micros", "max_platform_loss_micros", "max_cost_per_success_micros")


def parse_policy(parameters: Mapping[str, Any]) -> Policy:
    """Raises PolicyError, naming the parameter, where one is unknown or has a value it can't have."""
    known = {field.name for field in fields(Policy)}
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise PolicyError(f"{unknown[0]}: no such parameter; known are {', '.join(sorted(known))}")
    values = {name: _parsed(name, value) for name, value in parameters.items()}
    return Policy(**values)


def _parsed(name: str, value: Any) -> Any:
    if name in ("order", "shadow_order"):
        return _one_of(name, value, ORDERS if name == "order" else (*SHADOW_ORDERS, None))
    if name == "currency":
        return _currency(value)
    if name == "spill_when_saturated":
        return _one_of(name, value, (True, False))
    if name in ("success_band", "stable_cost_multiplier_limit", "fallback_cost_multiplier_limit"):
        return _decimal(name, value)
    if name == "max_attempts":
        return _one_of(name, value, (1, 2))
    return _whole(name, value)


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    # By type too: True equals 1.
    if not any(value == each and type(value) is type(each) for each in allowed):
        raise PolicyError(f"{name}: {value!r} is none of {', '.join(map(str, allowed))}")
    return value


def _currency(value: Any) -> str:
    if not is_currency(value):
        raise PolicyError(f"currency: {value!r} is not a three-letter code such as USD")
    return str(value)


def _decimal(name: str, value: Any) -> Decimal:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise PolicyError(f"{name}: {value!r} is not a number")
    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise PolicyError(f"{name}: {value!r} is not a number") from error
    least = Decimal(0) if name == "success_band" else Decimal(1)
    most = Decimal(1) if name == "success_band" else Decimal(1000)
    if not number.is_finite() or not (least <= number <= most) or (name == "success_band" and number == 0):
        raise PolicyError(f"{name}: {value} is not between {least} and {most}")
    return number


def _whole(name: str, value: Any) -> int | None:
    if value is None and name in _MAY_BE_ABSENT:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(f"{name}: {value!r} is not a whole number")
    if value < _AT_LEAST[name]:
        raise PolicyError(f"{name}: {value} is below {_AT_LEAST[name]}")
    return value
