"""What each decision about an unknown submission does to slot, job and money, said beforehand; pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dispatch.lifecycle import AttemptState, JobFacts, JobState, job_state
from dispatch.retry import Failure, may_switch


class Decision(StrEnum):
    EXISTS = "exists"
    ABSENT = "absent"
    GIVE_UP = "give_up"


class SlotEffect(StrEnum):
    KNOWN = "known"  # stays in use, and is counted as confirmed
    FREED = "freed"
    QUARANTINE = "quarantine"  # stays taken until `Effect.slot_until`


class MoneyEffect(StrEnum):
    EXPECTED = "expected"  # the quote is booked as expected, until the result tells
    NONE = "none"
    LOSS = "loss"  # the quote is booked as our loss


STATE_OF = {
    Decision.EXISTS: AttemptState.ACCEPTED,
    Decision.ABSENT: AttemptState.FAILED,
    Decision.GIVE_UP: AttemptState.ABANDONED,
}
_SLOT = {
    Decision.EXISTS: SlotEffect.KNOWN,
    Decision.ABSENT: SlotEffect.FREED,
    Decision.GIVE_UP: SlotEffect.QUARANTINE,
}
_MONEY = {
    Decision.EXISTS: MoneyEffect.EXPECTED,
    Decision.ABSENT: MoneyEffect.NONE,
    Decision.GIVE_UP: MoneyEffect.LOSS,
}


@dataclass(frozen=True, slots=True)
class Case:
    """The job around an uncertain attempt. `earlier` are the states of its attempts before this one."""

    job: JobState
    earlier: tuple[AttemptState, ...]
    number: int  # of the attempt
    max_attempts: int
    dispatch_deadline_at: datetime
    strict_model: bool
    cancel_requested: bool
    quarantine_until: datetime


@dataclass(frozen=True, slots=True)
class Effect:
    """`job` is the state that the job is in afterwards."""

    decision: Decision
    slot: SlotEffect
    slot_until: datetime | None
    job: JobState
    money: MoneyEffect


def effect_of(decision: Decision, case: Case, now: datetime) -> Effect:
    slot = _SLOT[decision]
    return Effect(
        decision,
        slot,
        case.quarantine_until if slot is SlotEffect.QUARANTINE else None,
        _job_after(decision, case, now),
        _MONEY[decision],
    )


def _job_after(decision: Decision, case: Case, now: datetime) -> JobState:
    switch = decision is Decision.ABSENT and may_switch(
        Failure(case.number, "capacity", retryable=True),
        max_attempts=case.max_attempts,
        now=now,
        dispatch_deadline_at=case.dispatch_deadline_at,
        strict_model=case.strict_model,
        cancel_requested=case.cancel_requested,
    )
    return job_state(
        JobFacts(
            state=case.job,
            attempts=(*case.earlier, STATE_OF[decision]),
            cancel_requested=case.cancel_requested,
            switch_allowed=bool(switch and switch.allowed),
            past_deadline=now >= case.dispatch_deadline_at,
            access_revoked=False,
        )
    )
