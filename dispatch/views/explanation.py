"""One selection round in the reader's language: the four steps, each candidate's outcome, the one switch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from dispatch.lifecycle import FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, Maintenance, SelectionRound
from dispatch.routing.explain import Explanation, Removal, explain
from dispatch.routing.snapshot import SCHEMA
from dispatch.views.snapshot_words import NOT_REACHED, details_said, not_reached_said

NOBODY_OUT: Final[Mapping[str, Maintenance]] = {}


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate with its one outcome. Costs in micros of the policy's currency."""

    key: str
    supply: str
    channel: str
    tier: str
    priority: int
    outcome: str  # selected, ranked, excluded
    step: int  # of the four
    position: int | None = None
    reason: str = ""  # stable code
    sentence: str = ""  # translated
    details: str = ""
    is_english: bool = False  # the details stand as they were recorded
    health: str = ""
    recovery_successes: int = 0
    quote_micros: int | None = None
    expected_cost_micros: int | None = None
    band: int | None = None
    free: int | None = None


@dataclass(frozen=True)
class Told:
    """`explanation` is None for a snapshot in a form that this version can't read."""

    round: SelectionRound
    attempt: Attempt | None
    explanation: Explanation | None
    rows: Sequence[CandidateRow]
    switch: str
    maintenances: Mapping[str, Maintenance] = field(default_factory=dict)  # that went on then, by channel

    @property
    def could_take_it(self) -> int:
        return self.explanation.selected + self.explanation.ranked if self.explanation else 0

    @property
    def not_reached(self) -> int:
        """Candidates of tiers that were not opened: they are counted in the first step."""
        return sum(row.reason == NOT_REACHED for row in self.rows)

    @property
    def selected(self) -> CandidateRow | None:
        return next((row for row in self.rows if row.outcome == "selected"), None)


def explained(
    found: SelectionRound, attempts: Sequence[Attempt], maintenances: Mapping[str, Maintenance] = NOBODY_OUT
) -> Told:
    """`attempts` are the job's, by number; `maintenances` those that went on then, by the channel's slug."""
    attempt = next((each for each in attempts if each.selection_round_id == found.pk), None)
    if found.snapshot.get("schema") != SCHEMA:
        return Told(found, attempt, None, (), "")
    explanation = explain(found.snapshot)
    rows = [*_placed(explanation, found.snapshot), *_excluded(explanation, found.snapshot)]
    return Told(found, attempt, explanation, rows, switch_state(attempts), maintenances)


def _placed(explanation: Explanation, recorded: Mapping[str, Any]) -> Iterator[CandidateRow]:
    for place in explanation.places:
        selected = place.position == 1
        supply, channel = _supply_of(place.candidate, recorded)
        yield CandidateRow(
            key=place.candidate,
            supply=supply,
            channel=channel,
            tier=place.tier,
            priority=place.priority,
            outcome="selected" if selected else "ranked",
            step=3,
            position=place.position,
            sentence="" if selected else _lost(place.lost_by),
            health=place.health,
            recovery_successes=_successes(supply, recorded),
            quote_micros=place.quote_micros,
            expected_cost_micros=place.expected_cost_micros,
            band=place.band,
            free=place.free,
        )


def _successes(supply: str, recorded: Mapping[str, Any]) -> int:
    """Of the recovery that counts: the one that is less far, of supply and channel; 0 without one."""
    told = recorded["supplies"][supply]
    places = (told, recorded["channels"][told["channel"]])
    return min((each["recovery_successes"] for each in places if each.get("recovery_successes")), default=0)


def _lost(key: str) -> str:
    return _("Behind the selected one by: %(key)s.") % {"key": _(key)} if key else ""


def _excluded(explanation: Explanation, recorded: Mapping[str, Any]) -> Iterator[CandidateRow]:
    priorities = {(each["supply"], each["tier"]): each.get("priority", 0) for each in recorded["bindings"]}
    for step in explanation.steps:
        for removal in step.removed:
            supply, channel = _supply_of(removal.candidate, recorded)
            yield CandidateRow(
                key=removal.candidate,
                supply=supply,
                channel=channel,
                tier=removal.tier,
                priority=priorities.get((supply, removal.tier), 0),
                outcome="excluded",
                step=step.number,
                reason=removal.reason,
                sentence=_why(removal, recorded),
                details=details_said(removal.details) or removal.details,
                is_english=not details_said(removal.details),
                health=recorded["evidence"]["findings"][removal.candidate].get("health", ""),
                quote_micros=removal.quote_micros,
            )


def _why(removal: Removal, recorded: Mapping[str, Any]) -> str:
    if removal.reason == NOT_REACHED:
        return not_reached_said(removal.tier, recorded)
    return _(removal.sentence)


def _supply_of(key: str, recorded: Mapping[str, Any]) -> tuple[str, str]:
    """A candidate's key is its supply, with `@tier` where it is bound in two."""
    supply = key if key in recorded["supplies"] else key.rpartition("@")[0]
    return supply, recorded["supplies"][supply]["channel"]


def record_of(found: SelectionRound) -> Mapping[str, Any]:
    """The snapshot as stored; of an image, without the empty place that its form keeps for real persons."""
    snapshot = found.snapshot
    layer = snapshot.get("decision", {}).get("layer")
    if snapshot.get("model", {}).get("modality") != "image" or not layer:
        return snapshot
    return {**snapshot, "decision": {**snapshot["decision"], "layer": {"tier": layer["tier"]}}}


def switch_state(attempts: Sequence[Attempt]) -> str:
    """What became of the one switch: none_yet, used, available, not_needed, not_taken."""
    if not attempts:
        return "none_yet"
    if len(attempts) > 1:
        return "used"
    only = attempts[0]
    if only.state not in FINAL_ATTEMPT_STATES:
        return "available"
    if only.state in (AttemptState.SUCCEEDED, AttemptState.CANCELLED):
        return "not_needed"
    return "not_taken"
