"""Why not Z: the least single change that would have made a losing supply win a recorded round; pure.

Every change that is told was tried: the round is routed again with it, and all else as recorded.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from billing.money import MICROS, written
from catalog.policy import PRIORITY_MAX
from dispatch.routing import filters, guardrails
from dispatch.routing.explain import Note
from dispatch.routing.router import route
from dispatch.routing.supposed import (
    Supposition,
    healthier,
    with_candidate,
    with_free,
    with_quote,
    without_slots,
)
from dispatch.routing.types import Candidate, Decision, Finding, Health, RoutingInput

# What a circuit may become, nearest to `disabled` first, with the successes that a recovery counts.
_BETTER: Final[tuple[tuple[Health, int], ...]] = (
    ("circuit_open", 0),
    ("probing", 0),
    ("recovering", 2),
    ("recovering", 3),
    ("recovering", 4),
    ("degraded", 0),
    ("healthy", 0),
)

_HEALTHIER: Final = (
    "{loser} would have won if {places} had been {after}; it was {before}.",
    "{loser} would have won if {places} had been {after} with {successes} successes; it was {before}.",
)

type Kind = Literal["priority", "health", "slots", "price"]
type Wins = Callable[[RoutingInput], bool]


class NotBound(LookupError):
    """The supply was no candidate of the round."""


@dataclass(frozen=True, slots=True)
class Change:
    """One value that would have decided otherwise. Priorities are 0 to 1 000 000, slots free slots, prices
    the quote of this request in micros; `before` is None for a supply without a price."""

    kind: Kind
    subject: str  # the candidate that is changed, by key: the losing one, or the one that won
    before: int | str | None
    after: int | str
    note: Note

    @property
    def supposition(self) -> Supposition:
        """The same change as the simulator takes it."""
        if self.kind == "health":
            successes = int(str(self.note.values["successes"]))
            return Supposition(self.subject, health=cast(Health, self.after), recovery_successes=successes)
        after = int(self.after)
        if self.kind == "priority":
            return Supposition(self.subject, priority=after)
        if self.kind == "slots":
            return Supposition(self.subject, free=after)
        return Supposition(self.subject, quote=after)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """`changes` is empty where the supply was chosen, and where no single change would have been enough."""

    supply: str
    chosen: str | None  # supply
    outcome: str
    findings: tuple[Finding, ...]  # the supply's own, one for each tier that it is bound in
    changes: tuple[Change, ...]

    @property
    def won(self) -> bool:
        return self.chosen == self.supply


def why_not(inputs: RoutingInput, supply: str) -> WhyNot:
    """What would have made `supply` win. Raises NotBound."""
    own = [candidate for candidate in inputs.candidates if candidate.supply.id == supply]
    if not own:
        raise NotBound(f"supply {supply} was no candidate of this round")
    decision = route(inputs)
    chosen = decision.chosen.supply.id if decision.chosen else None
    findings = tuple(it for it in decision.findings if it.candidate.supply.id == supply)
    changes = () if chosen == supply else tuple(_changes(inputs, own, decision))
    return WhyNot(supply, chosen, decision.outcome, findings, changes)


def _changes(inputs: RoutingInput, own: list[Candidate], decision: Decision) -> Iterator[Change]:
    def wins(changed: RoutingInput) -> bool:
        chosen = route(changed).chosen
        return chosen is not None and chosen.supply.id == own[0].supply.id

    winner = decision.chosen
    yield from _priority(inputs, own, winner, wins)
    yield from _health(inputs, own[0], wins)
    yield from _slots(inputs, own[0], wins)
    if winner is not None:
        yield from _winner_full(inputs, own[0], winner, wins)
    yield from _price(inputs, own[0], decision, wins)


def _nearest(good: int, bad: int, wins: Callable[[int], bool]) -> int:
    """Between a value that wins and one that does not: the one nearest to the latter that wins."""
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if wins(middle) else (good, middle)
    return good


# Priority: read by one order only
def _priority(
    inputs: RoutingInput, own: list[Candidate], winner: Candidate | None, wins: Wins
) -> Iterator[Change]:
    if inputs.policy.order != "manual_priority":
        return
    for candidate in own:
        yield from _other_priority(inputs, candidate, PRIORITY_MAX, candidate, wins)
    if winner is not None:
        yield from _other_priority(inputs, winner, 0, own[0], wins)


def _other_priority(
    inputs: RoutingInput, changed: Candidate, utmost: int, loser: Candidate, wins: Wins
) -> Iterator[Change]:
    def wins_at(priority: int) -> bool:
        return wins(with_candidate(inputs, replace(changed, priority=priority)))

    if changed.priority == utmost or not wins_at(utmost):
        return
    after = _nearest(utmost, changed.priority, wins_at)
    higher = "{loser} would have won with priority {after} or higher; it had {before}."
    lower = "{loser} would have won if {subject} had had priority {after} or lower; it had {before}."
    yield _change("priority", changed, changed.priority, after, higher if utmost else lower, loser)


# Health: the worse of channel and supply decides, so both are as good as is asked
def _health(inputs: RoutingInput, loser: Candidate, wins: Wins) -> Iterator[Change]:
    supply = loser.supply
    before = filters.worse_health(supply, inputs)
    for health, successes in _BETTER:
        changed, places = healthier(inputs, supply, health, successes)
        if places and wins(changed):
            told = {"places": " and ".join(places), "successes": str(successes)}
            yield _change("health", loser, before, health, _HEALTHIER[health == "recovering"], loser, **told)
            return


# Slots: of the loser, freed; or of the winner, all taken
def _slots(inputs: RoutingInput, loser: Candidate, wins: Wins) -> Iterator[Change]:
    """As many free slots as are needed, never more than there are."""
    supply = loser.supply
    before, blocked = filters.least_free(supply, inputs), filters.unknown_slots(supply, inputs) is not None
    most = filters.least_free(supply, with_free(inputs, supply, None))

    def wins_at(free: int) -> bool:
        return wins(with_free(inputs, supply, free))

    bad = before - 1 if blocked else before
    if most <= bad or not wins_at(most):
        return
    # Fewer slots of unknown outcome are free slots too, and may be more than were looked for.
    after = filters.least_free(supply, with_free(inputs, supply, _nearest(most, bad, wins_at)))
    sentence = "{loser} would have won with {after} free slots; it had {before}."
    if blocked:
        sentence = (
            "{loser} would have won with {after} free slots, and fewer held by attempts whose outcome is"
            " not known; it had {before}."
        )
    yield _change("slots", loser, before, after, sentence, loser)


def _winner_full(inputs: RoutingInput, loser: Candidate, winner: Candidate, wins: Wins) -> Iterator[Change]:
    free = filters.free_slots(winner.supply, inputs.supplies[winner.supply.id])
    if wins(without_slots(inputs, winner.supply, 0)):
        sentence = "{loser} would have won if {subject} had had no free slot; it had {before}."
        yield _change("slots", winner, free, 0, sentence, loser)


# Price: the quote of this one request
def _price(inputs: RoutingInput, loser: Candidate, decision: Decision, wins: Wins) -> Iterator[Change]:
    finding = next(it for it in decision.findings if it.candidate.key == loser.key)
    before = guardrails.quoted(finding, inputs)
    utmost = before if before is not None else _dearest(decision) + 1

    def wins_at(quote: int) -> bool:
        return wins(with_quote(inputs, loser, quote))

    if utmost == 0 or not wins_at(0):
        return
    after = _nearest(0, utmost, wins_at)
    sentence = "{loser} would have won at {after} {currency} or less; it was quoted {before}."
    if before is None:
        sentence = "{loser} would have won with a price of {after} {currency}; it had none for this request."
    yield _change("price", loser, before, after, sentence, loser, currency=inputs.policy.currency)


def _dearest(decision: Decision) -> int:
    """Micros: the highest amount that this decision knows, to look for a price below it."""
    limits = decision.limits
    quotes = (it.quote for it in decision.findings)
    known = (*quotes, decision.baseline, limits.stable, limits.fallback, limits.policy, limits.customer)
    return max((micros for micros in known if micros is not None), default=MICROS)


def _change(
    kind: Kind,
    subject: Candidate,
    before: int | str | None,
    after: int | str,
    sentence: str,
    loser: Candidate,
    **told: str,
) -> Change:
    values: Mapping[str, object] = {
        "loser": loser.key,
        "subject": subject.key,
        "before": _shown(kind, before),
        "after": _shown(kind, after),
        **told,
    }
    return Change(kind, subject.key, before, after, Note(sentence, values))


def _shown(kind: Kind, value: int | str | None) -> int | str | None:
    return written(value) if kind == "price" and isinstance(value, int) else value
