"""What the shadow order of a policy would have taken, beside what was taken; pure, from stored snapshots.

The shadow is never executed: of its pick there are expectations, of the real one a result too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

type Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the attempt that the real order's pick was given; seconds from selection to result."""

    state: str
    seconds: float | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True)
class ShadowedRound:
    """One stored round with a shadow order: the parts of its snapshot that speak of it."""

    model: str
    day: date
    currency: str
    shadow: Told  # evidence.shadow
    candidates: Told  # decision.candidates
    findings: Told  # evidence.findings
    supplies: Told
    result: Result


@dataclass(frozen=True, slots=True)
class Expected:
    """What was known of one pick at the time: its expected success cost, its supply's p95, its score."""

    candidate: str
    cost_micros: int
    p95_s: float | None
    score: int | None  # millionths; of the weighted order only


@dataclass(frozen=True, slots=True)
class Difference:
    """A round in which the orders disagree. `reason` is the key in which the shadow's pick lost."""

    real: Expected
    shadow: Expected
    reason: str
    result: Result


@dataclass(frozen=True, slots=True)
class Averages:
    """Means over the rounds in which the value is known; None where it never is."""

    cost_micros: int | None
    p95_s: float | None
    score: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One model, day and shadow order. `real`, `shadow` and what follows are of the differing rounds."""

    model: str
    day: date
    shadow_order: str
    currency: str
    rounds: int
    agreed: int
    real: Averages
    shadow: Averages
    reasons: Mapping[str, int]
    picks: Mapping[tuple[str, str], int]  # real → shadow
    results: Mapping[str, int]  # states of the real attempts
    real_seconds: float | None
    real_cost_micros: int | None

    @property
    def differed(self) -> int:
        return self.rounds - self.agreed


def report(rounds: Iterable[ShadowedRound]) -> list[Row]:
    """By model, then newest day first, then shadow order."""
    grouped: defaultdict[tuple[str, date, str, str], list[Difference | None]] = defaultdict(list)
    for each in rounds:
        grouped[each.model, each.day, each.shadow["name"], each.currency].append(difference(each))
    ordered = sorted(grouped, key=lambda key: (key[0], -key[1].toordinal(), *key[2:]))
    return [_row(*key, grouped[key]) for key in ordered]


def difference(it: ShadowedRound) -> Difference | None:
    """None where both orders take the same."""
    chosen = next(key for key, verdict in it.candidates.items() if verdict["verdict"] == "chosen")
    scores = dict(it.shadow["order"]) if isinstance(it.shadow["order"][0], list) else {}
    first = it.shadow["order"][0]
    favourite = first[0] if scores else first
    if favourite == chosen:
        return None
    return Difference(
        real=_expected(chosen, it, scores),
        shadow=_expected(favourite, it, scores),
        reason=it.findings[favourite]["lost_by"],
        result=it.result,
    )


def _expected(key: str, it: ShadowedRound, scores: Mapping[str, int]) -> Expected:
    supply = key if key in it.supplies else key.rpartition("@")[0]
    return Expected(
        candidate=key,
        cost_micros=it.candidates[key]["expected_cost"],
        p95_s=it.supplies[supply].get("p95_s"),
        score=scores.get(key),
    )


def _row(model: str, day: date, shadow_order: str, currency: str, rounds: list[Difference | None]) -> Row:
    differing = [each for each in rounds if each is not None]
    return Row(
        model=model,
        day=day,
        shadow_order=shadow_order,
        currency=currency,
        rounds=len(rounds),
        agreed=len(rounds) - len(differing),
        real=_averages([each.real for each in differing]),
        shadow=_averages([each.shadow for each in differing]),
        reasons=Counter(each.reason for each in differing),
        picks=Counter((each.real.candidate, each.shadow.candidate) for each in differing),
        results=Counter(each.result.state for each in differing),
        real_seconds=_mean(each.result.seconds for each in differing),
        real_cost_micros=_whole_mean(each.result.cost_micros for each in differing),
    )


def _averages(expected: list[Expected]) -> Averages:
    return Averages(
        cost_micros=_whole_mean(each.cost_micros for each in expected),
        p95_s=_mean(each.p95_s for each in expected),
        score=_whole_mean(each.score for each in expected),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _whole_mean(values: Iterable[int | None]) -> int | None:
    mean = _mean(values)
    return None if mean is None else round(mean)
