"""When a rate or a span of the last quarter of an hour is out of its own last day; pure.

A rate is high when even the lower end of its 95 % interval lies above its limit: so few samples prove little,
many prove it soon, and nobody has to guess how noisy a channel is."""

from dataclasses import dataclass

from dispatch.routing.ordering import wilson_lower_95


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `whole` samples."""

    part: int = 0
    whole: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.part + other.part, self.whole + other.whole)

    @property
    def rate(self) -> float:
        """0 where nothing was seen."""
        return self.part / self.whole if self.whole else 0.0


@dataclass(frozen=True, slots=True)
class RateRule:
    samples: int  # at least so many now; with fewer nothing is said
    floor: float  # a rate up to it is nobody's trouble
    factor: float  # times the day's own rate
    ceiling: float = 0.9  # a rate beyond it is bad, however usual it has become


def limit_of(before: Share, rule: RateRule) -> float:
    """What the rate must not pass: a multiple of the day's own, but at most half of the way from there to 1,
    or a rate that is bad already could never become worse; and never more than the ceiling, or a day of
    nothing else would make it normal."""
    return max(rule.floor, min(rule.factor * before.rate, (1 + before.rate) / 2, rule.ceiling))


def is_high(now: Share, before: Share, rule: RateRule) -> bool:
    return now.whole >= rule.samples and wilson_lower_95(now.part, now.whole) > limit_of(before, rule)


def has_shifted(now: Share, before: Share, rule: RateRule) -> bool:
    """High, or so low that even the upper end of its interval lies below the day's own by the factor."""
    if is_high(now, before, rule):
        return True
    enough = min(now.whole, before.whole) >= rule.samples and before.rate > rule.floor
    return enough and 1 - wilson_lower_95(now.whole - now.part, now.whole) < before.rate / rule.factor


@dataclass(frozen=True, slots=True)
class Spans:
    """The median of `samples` spans."""

    median_s: float = 0.0
    samples: int = 0


def is_slow(now: Spans, before: Spans, samples: int, factor: float) -> bool:
    """Needs `samples` of both: there is no slow without a normal."""
    return min(now.samples, before.samples) >= samples and now.median_s > factor * before.median_s


@dataclass(frozen=True, slots=True)
class Costs:
    """Of the jobs of one model that ended: what all their attempts cost, and how many succeeded."""

    ended: int = 0
    succeeded: int = 0
    micros: int = 0

    def __add__(self, other: "Costs") -> "Costs":
        return Costs(self.ended + other.ended, self.succeeded + other.succeeded, self.micros + other.micros)

    @property
    def per_success_micros(self) -> int:
        """Without any success, the whole: it is at least that."""
        return self.micros // max(self.succeeded, 1)


def is_dear(costs: Costs, samples: int, limit_micros: int | None) -> bool:
    return limit_micros is not None and costs.ended >= samples and costs.per_success_micros > limit_micros
