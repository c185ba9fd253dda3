"""What a publication was expected to change, what came of it, and how far apart they are; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, Final, Self

FEW: Final = 20  # selections, below which nothing is said
LEAST_BAND: Final = 0.05  # a share or a rate is never expected more exactly than by five points
COST_BAND: Final = 0.2  # of the forecast's cost of a success
_SURE: Final = 1.96  # standard errors: 19 of 20 times inside, if nothing but chance is at work


@dataclass(frozen=True, slots=True)
class Forecast:
    """From the replay of the day before: rounds by the supply that they would have chosen."""

    picks: Mapping[str, int] = field(default_factory=dict)
    recorded: int = 0  # rounds of that day; of these, as many as were replayed
    replayed: int = 0
    success: float | None = None
    cost_per_success_micros: int | None = None
    currency: str = ""

    @property
    def rounds(self) -> int:
        """That would have chosen a supply."""
        return sum(self.picks.values())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        return cls(**document)


@dataclass(frozen=True, slots=True)
class Actual:
    """Selections since the publication, by supply; of these attempts, how those that have ended came out."""

    picks: Mapping[str, int] = field(default_factory=dict)
    samples: int = 0
    successes: int = 0
    ended: int = 0
    delivered: int = 0
    spent_micros: int = 0

    @property
    def rounds(self) -> int:
        return sum(self.picks.values())

    @property
    def success(self) -> float | None:
        return self.successes / self.samples if self.samples else None

    @property
    def cost_per_success_micros(self) -> int | None:
        return self.spent_micros // self.delivered if self.delivered else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        return cls(**document)


@dataclass(frozen=True, slots=True)
class SupplyShare:
    """Of one supply; `band` is how far `actual` may be from `expected` by chance."""

    supply: str
    expected: float
    actual: float
    band: float

    @property
    def difference(self) -> float:
        return self.actual - self.expected

    @property
    def is_off(self) -> bool:
        return abs(self.difference) > self.band


@dataclass(frozen=True, slots=True)
class Comparison:
    """`verdict`: no_forecast, too_few, as_predicted or off. Differences are actual less expected; that of the
    cost is a part of what was expected. None: one of the two is not known."""

    verdict: str
    shares: tuple[SupplyShare, ...] = ()  # the largest difference first
    success_difference: float | None = None
    success_is_off: bool = False
    cost_difference: float | None = None
    cost_is_off: bool = False

    @property
    def worst(self) -> SupplyShare | None:
        return self.shares[0] if self.shares else None

    @property
    def share_error(self) -> float | None:
        return abs(self.worst.difference) if self.worst else None


def compare(forecast: Forecast, actual: Actual) -> Comparison:
    if not forecast.rounds:
        return Comparison("no_forecast")
    shares = tuple(sorted(_shares(forecast, actual), key=lambda each: (-abs(each.difference), each.supply)))
    success = _difference(actual.success, forecast.success)
    cost = _difference(actual.cost_per_success_micros, forecast.cost_per_success_micros)
    relative = None if cost is None else cost / max(forecast.cost_per_success_micros or 0, 1)
    success_is_off = (
        success is not None
        and actual.samples >= FEW
        and abs(success) > _band(forecast.success or 0, forecast.rounds, actual.samples)
    )
    cost_is_off = relative is not None and actual.delivered >= FEW and abs(relative) > COST_BAND
    is_off = any(each.is_off for each in shares) or success_is_off or cost_is_off
    verdict = "too_few" if actual.rounds < FEW else "off" if is_off else "as_predicted"
    return Comparison(verdict, shares, success, success_is_off, relative, cost_is_off)


def _shares(forecast: Forecast, actual: Actual) -> Iterable[SupplyShare]:
    for supply in {**forecast.picks, **actual.picks}:
        expected = forecast.picks.get(supply, 0) / forecast.rounds
        real = actual.picks.get(supply, 0) / actual.rounds if actual.rounds else 0.0
        yield SupplyShare(supply, expected, real, _band(expected, forecast.rounds, max(actual.rounds, 1)))


def _band(rate: float, before: int, after: int) -> float:
    """How far two samples of one rate differ by chance."""
    return max(LEAST_BAND, _SURE * sqrt(rate * (1 - rate) * (1 / before + 1 / after)))


def _difference(actual: float | None, expected: float | None) -> float | None:
    return None if actual is None or expected is None else actual - expected
