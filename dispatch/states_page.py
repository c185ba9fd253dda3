"""The page docs/states.md, from the transition tables; pure. A test keeps page and tables equal."""

from collections.abc import Mapping
from enum import StrEnum

from dispatch.lifecycle import ATTEMPT_MOVES, JOB_MOVES, AttemptState, JobState, slot_in

_JOB_MEANING = {
    JobState.QUEUED: "waits for its first selection",
    JobState.DISPATCHING: "an attempt is selected and not yet sent, or the second is being selected",
    JobState.RUNNING: "sent; the provider works on it, or nobody knows yet whether it does",
    JobState.FETCHING_OUTPUT: "generated; the result is being copied to our storage",
    JobState.CANCEL_REQUESTED: "the customer wants it cancelled; the provider's real end wins",
    JobState.SUCCEEDED: "delivered",
    JobState.FAILED: "ended without a result",
    JobState.CANCELLED: "ended because the customer asked",
    JobState.EXPIRED: "its dispatch deadline passed before a provider had it",
}
_ATTEMPT_MEANING = {
    AttemptState.READY: "selected, slot held, nothing sent",
    AttemptState.SUBMITTING: "a worker sends it now",
    AttemptState.SUBMISSION_UNCERTAIN: "it may or may not have reached the provider; never sent again",
    AttemptState.ACCEPTED: "the provider gave its job id",
    AttemptState.PROVIDER_QUEUED: "waits at the provider, throttled included",
    AttemptState.RUNNING: "the provider generates",
    AttemptState.CANCEL_REQUESTED: "the provider was asked to cancel",
    AttemptState.OUTCOME_UNCERTAIN: "accepted, but past its deadline or lost at the provider",
    AttemptState.GENERATED: "the provider is done",
    AttemptState.FETCHING: "its output is being copied to our storage",
    AttemptState.SUCCEEDED: "its output is stored",
    AttemptState.FAILED: "ended without an output",
    AttemptState.CANCELLED: "stopped before or at the provider",
    AttemptState.ABANDONED: "nobody could find out in time; its slot stays in quarantine",
}


def states_page() -> str:
    return "\n".join(
        [
            "# States",
            "",
            "Generated from `dispatch/lifecycle.py` by `./run manage states_page`; a test keeps both equal.",
            "A move happens only from where these tables list it, at the version that was seen.",
            "",
            "## Job",
            "",
            *_table(JOB_MOVES, _JOB_MEANING, {}),
            "",
            "## Attempt",
            "",
            *_table(ATTEMPT_MOVES, _ATTEMPT_MEANING, {state: slot_in(state).value for state in AttemptState}),
            "",
        ]
    )


def _table[S: StrEnum](
    moves: Mapping[S, frozenset[S]], meaning: Mapping[S, str], slots: Mapping[S, str]
) -> list[str]:
    slot_head, slot_rule = (" slot |", " --- |") if slots else ("", "")
    lines = [f"| state | means |{slot_head} goes to |", f"| --- | --- |{slot_rule} --- |"]
    for state, targets in moves.items():
        slot = f" {slots[state]} |" if slots else ""
        lines.append(f"| `{state}` | {meaning[state]} |{slot} {_listed(targets)} |")
    return lines


def _listed[S: StrEnum](targets: frozenset[S]) -> str:
    return " ".join(f"`{target}`" for target in sorted(targets)) or "final"
