"""The four-step explanation of a selection, made from its snapshot, for console, API and command line.

All words are English msgids from tables or constants, so that a caller can translate them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from billing.money import written
from dispatch.routing.reasons import KEYS, REASONS
from dispatch.routing.snapshot import bindings_by_key

TITLES: Final = (
    "Hard capability",
    "Health and capacity",
    "Stability and cost policy",
    "At most one switch of supply",
)
LAST_STEPS: Final = (7, 9, 12)  # of the thirteen, for the first three of the four

OUTCOMES: Final[Mapping[str, str]] = {
    "chosen": "A supply was chosen.",
    "waiting_capacity": "The job waits for a free slot.",
    "no_candidate": "No supply can take the request now.",
}
ORDERS: Final[Mapping[str, str]] = {
    "stable_first": "Sorted by health, success band, expected success cost, free slots, supply id.",
    "cost_first": "Sorted by expected success cost, health, success band, free slots, supply id.",
    "manual_priority": "Sorted by priority, higher first, then expected success cost, health, success band,"
    " free slots, supply id.",
}
FLAGS: Final[Mapping[str, str]] = {
    "probe": "A probing or recovering supply was put in front: it was its turn to be tried.",
    "spill": "The exact tier is full; its overflow may use a fallback supply.",
    "emergency_override": "Nobody was inside the cost multipliers; the emergency override lifted them.",
    "refusal_probe": "The provider refused this content before; this attempt asks again.",
}


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence with named places, and what stands in them."""

    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence.format_map(self.values)


@dataclass(frozen=True, slots=True)
class Removal:
    """A candidate that a step took out, and why."""

    candidate: str  # its key
    tier: str
    reason: str  # stable code
    sentence: str
    details: str
    health: str  # the worse of channel and supply; empty where no step looked at it
    quote_micros: int | None


@dataclass(frozen=True, slots=True)
class Step:
    number: int  # 1 to 4
    title: str
    removed: tuple[Removal, ...]
    remained: tuple[str, ...]  # candidate keys
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A candidate's place in the order of the chosen layer. Costs in micros of the policy's currency."""

    position: int  # 1 is the chosen one
    candidate: str
    tier: str
    priority: int
    health: str
    band: int
    quote_micros: int
    expected_cost_micros: int
    free: int  # slots
    lost_by: str  # the key in which it lost, in words; empty for the chosen one


@dataclass(frozen=True, slots=True)
class Explanation:
    """Selected + ranked + excluded = candidates."""

    model: str
    modality: str
    outcome: str  # stable code
    sentence: str
    chosen: str | None  # candidate key
    tier: str | None  # of the layer that was chosen or is waited for
    currency: str
    candidates: int
    selected: int
    ranked: int
    excluded: int
    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    flags: tuple[str, ...]
    alerts: tuple[str, ...]
    degradation: Mapping[str, Any] | None
    baseline_micros: int | None


def explain(recorded: Mapping[str, Any]) -> Explanation:
    """From a snapshot (dispatch.routing.snapshot), whatever day it was stored."""
    decision = recorded["decision"]
    verdicts = decision["candidates"]
    places = tuple(_places(recorded))
    excluded = sum(each["verdict"] == "excluded" for each in verdicts.values())
    return Explanation(
        model=recorded["model"]["slug"],
        modality=recorded["model"]["modality"],
        outcome=decision["outcome"],
        sentence=OUTCOMES[decision["outcome"]],
        chosen=places[0].candidate if places else None,
        tier=decision["layer"] and decision["layer"]["tier"],
        currency=recorded["policy"]["currency"],
        candidates=len(verdicts),
        selected=sum(each["verdict"] == "chosen" for each in verdicts.values()),
        ranked=sum(each["verdict"] == "ranked" for each in verdicts.values()),
        excluded=excluded,
        steps=_steps(recorded, places),
        places=places,
        flags=tuple(decision["flags"]),
        alerts=tuple(decision["alerts"]),
        degradation=decision["degradation"],
        baseline_micros=decision["baseline"],
    )


def _steps(recorded: Mapping[str, Any], places: Sequence[Place]) -> tuple[Step, ...]:
    removals = list(_removals(recorded))
    remaining = list(recorded["decision"]["candidates"])
    notes = (_capability_notes(recorded), (), _cost_notes(recorded), _switch_notes(recorded))
    steps, first = [], 0
    for number, (title, last) in enumerate(zip(TITLES, LAST_STEPS, strict=False), start=1):
        removed = tuple(each for each in removals if first < REASONS[each.reason].step <= last)
        gone = {each.candidate for each in removed}
        remaining = [key for key in remaining if key not in gone]
        steps.append(Step(number, title, removed, tuple(remaining), notes[number - 1]))
        first = last
    chosen = tuple(place.candidate for place in places[:1])
    return (*steps, Step(4, TITLES[3], (), chosen, notes[3]))


def _removals(recorded: Mapping[str, Any]) -> Iterator[Removal]:
    bindings, findings = bindings_by_key(recorded), recorded["evidence"]["findings"]
    for key, each in recorded["decision"]["candidates"].items():
        if each["verdict"] == "excluded":
            yield Removal(
                candidate=key,
                tier=bindings[key]["tier"],
                reason=each["reason"],
                sentence=REASONS[each["reason"]].sentence,
                details=findings[key].get("details", ""),
                health=findings[key].get("health", ""),
                quote_micros=each["quote"],
            )


def _places(recorded: Mapping[str, Any]) -> Iterator[Place]:
    bindings, findings = bindings_by_key(recorded), recorded["evidence"]["findings"]
    verdicts = recorded["decision"]["candidates"]
    placed = [key for key, finding in findings.items() if "position" in finding]
    for key in sorted(placed, key=lambda key: findings[key]["position"]):
        finding, verdict = findings[key], verdicts[key]
        yield Place(
            position=finding["position"],
            candidate=key,
            tier=bindings[key]["tier"],
            priority=bindings[key].get("priority", 0),
            health=finding["health"],
            band=verdict["band"],
            quote_micros=verdict["quote"],
            expected_cost_micros=verdict["expected_cost"],
            free=verdict["free"],
            lost_by=KEYS[finding["lost_by"]] if "lost_by" in finding else "",
        )


def _capability_notes(recorded: Mapping[str, Any]) -> tuple[Note, ...]:
    if recorded["model"]["modality"] != "video":
        return ()
    if recorded["request"]["shape"].get("real_person"):
        return (
            Note("Real persons are shown: denied supplies are out, restricted ones come after allowed ones."),
        )
    return (Note("No real persons are shown: the real-person policy takes nobody out."),)


def _cost_notes(recorded: Mapping[str, Any]) -> tuple[Note, ...]:
    decision, limits = recorded["decision"], recorded["evidence"]["limits"]
    notes = [Note(ORDERS[recorded["policy"]["order"]])]
    if decision["baseline"] is None:
        notes.append(Note("No exact quote: no baseline, and no multiplier applies."))
    else:
        notes.append(_money("Baseline {amount} {currency}.", decision["baseline"], recorded))
    for name, sentence in _LIMITS.items():
        if limits[name] is not None:
            notes.append(_money(sentence, limits[name], recorded))
    if limits["spent"]:
        notes.append(_money("This job has spent {amount} {currency}.", limits["spent"], recorded))
    return (*notes, *(Note(FLAGS[flag]) for flag in decision["flags"]))


_LIMITS: Final[Mapping[str, str]] = {
    "stable": "Exact supplies: at most {amount} {currency}.",
    "fallback": "Fallback and degraded supplies: at most {amount} {currency}.",
    "policy": "The policy's ceiling for the whole job: {amount} {currency}.",
    "customer": "The customer's ceiling for the whole job: {amount} {currency}.",
}


def _money(sentence: str, micros: int, recorded: Mapping[str, Any]) -> Note:
    return Note(sentence, {"amount": written(micros), "currency": recorded["policy"]["currency"]})


def _switch_notes(recorded: Mapping[str, Any]) -> tuple[Note, ...]:
    attempt, tried = recorded["job"].get("attempt", 1), recorded["job"].get("tried", ())
    if attempt == 2:
        return (Note("Second and last attempt, after {tried}.", {"tried": ", ".join(tried)}),)
    request = recorded["request"]
    if request.get("strict_model") or request.get("bound_supply") or request.get("bound_channel"):
        return (Note("The request forbids a switch: this attempt is the only one."),)
    return (Note("If this attempt fails for the supply's sake, one other supply may be tried."),)
