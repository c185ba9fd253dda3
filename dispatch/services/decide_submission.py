"""An operator decides what became of a submission that nobody could clear up by asking the provider.

It exists (checked at the provider first), it does not exist, or it can't be found out. Nothing is posted
again; what the decision moves is what the reconciler's own finding would have moved."""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.providers.types import Accepted, JobStatus, PollFailure
from dispatch.errors import (
    AlreadyDecided,
    DecisionNeedsEvidence,
    NotAtProvider,
    SenderNotEnded,
    TakenByAnother,
    TaskOfAnother,
)
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, DeskClaim, GivingUp, ProviderEvent, ProviderJob
from dispatch.repository import keep_event, locked_attempt
from dispatch.sending import may_still_send
from dispatch.services import raise_alerts
from dispatch.services.query_provider import status_of
from dispatch.services.record_submission import record_acceptance
from dispatch.services.recover import abandon, fail_as_not_created
from dispatch.services.take_attempt import held_claim

A = AttemptState


def provider_has_it(
    attempt_id: int, provider_job_id: str, actor: Actor, clock: Callable[[], datetime]
) -> None:
    """The attempt goes on under `provider_job_id`, once the provider has confirmed that it knows it.

    Raises DecisionNeedsEvidence without an id or with one of another attempt, NotAtProvider when the
    provider does not know it or does not answer, AlreadyDecided, TakenByAnother."""
    provider_job_id = provider_job_id.strip()
    attempt = _uncertain(attempt_id)
    refuse_used(attempt, provider_job_id)
    status = _ask(attempt, provider_job_id)
    now = clock()
    with transaction.atomic():
        attempt = _lock_for_decision(attempt_id, actor, now)
        keep_event(
            attempt,
            ProviderEvent.Kind.RECOVER,
            "found_by_operator",
            {"job_id": provider_job_id, **status.raw},
            now,
        )
        if not record_acceptance(
            attempt, Accepted(provider_job_id, None, status.raw_status, (), status.raw), now
        ):
            raise DecisionNeedsEvidence(f"{provider_job_id} belongs to another attempt.", "provider_job_id")
        raise_alerts.submission_resolved(attempt, f"{actor.name}: the provider has it", now)
        _record(attempt, "exists", {"provider_job_id": provider_job_id}, actor, now)


def provider_does_not_have_it(attempt_id: int, note: str, actor: Actor, now: datetime) -> None:
    """The attempt failed as not created: its slot is free, and the one switch may follow.

    Raises DecisionNeedsEvidence without a note, SenderNotEnded while it may still be sent, AlreadyDecided,
    TakenByAnother."""
    refuse_empty(note, "note")
    with transaction.atomic():
        attempt = _lock_for_decision(attempt_id, actor, now)
        if may_still_send(attempt.pk):
            raise SenderNotEnded  # what an operator did not see at the provider may come there yet
        fail_as_not_created(attempt, f"{actor.name} looked at the provider: {note}", now)
        _record(attempt, "does not exist", {"note": note}, actor, now)


def cannot_be_found_out(attempt_id: int, reason: str, actor: Actor, now: datetime) -> bool:
    """The attempt is given up before its deadline: the job fails, the slot stays taken in quarantine, and
    the cost is booked as our loss. Raises as `provider_does_not_have_it`.

    False: it costs more than one operator gives up alone. What they found is kept, the attempt is let go, and
    a second one has to say the same."""
    refuse_empty(reason, "reason")
    with transaction.atomic():
        attempt = _lock_for_decision(attempt_id, actor, now)
        evidence = {"reason": reason}
        if needs_second_person(attempt):
            first = GivingUp.objects.filter(attempt=attempt).exclude(operator=actor.name).first()
            if first is None:
                _propose(attempt, reason, actor, now)
                return False
            evidence |= {"first": first.operator, "first_reason": first.reason}
        abandon(attempt, now)
        _record(attempt, "cannot be found out", evidence, actor, now)
        return True


def needs_second_person(attempt: Attempt) -> bool:
    """Whether giving it up costs more than one operator decides alone."""
    return attempt.quote_micros > settings.GIVE_UP_ALONE_UP_TO_MICROS


def _propose(attempt: Attempt, reason: str, actor: Actor, now: datetime) -> None:
    proposal = {"operator": actor.name, "reason": reason[:500], "at": now}
    GivingUp.objects.update_or_create(attempt=attempt, defaults=proposal)
    DeskClaim.objects.filter(attempt=attempt).delete()
    after = {"reason": reason, "quote_micros": attempt.quote_micros, "currency": attempt.quote_currency}
    subject = f"attempt:{attempt.public_id}"
    record(actor, Change("propose to give up", subject, after=after), now)


def _uncertain(attempt_id: int) -> Attempt:
    attempt = Attempt.objects.select_related("channel", "supply", "job", "policy", "cost_rule_version").get(
        pk=attempt_id
    )
    if attempt.state != A.SUBMISSION_UNCERTAIN:
        raise AlreadyDecided(f"{attempt.public_id} is {attempt.state} by now: there is nothing to decide.")
    return attempt


def _lock_for_decision(attempt_id: int, actor: Actor, now: datetime) -> Attempt:
    """The provider's own answer may have come while the form was open, or somebody else took it."""
    locked_attempt(attempt_id)
    attempt = _uncertain(attempt_id)
    claim = held_claim(attempt, now)
    if claim is not None and claim.operator != actor.name:
        raise TakenByAnother(claim.operator, claim.until_at)
    return attempt


def refuse_used(attempt: Attempt, provider_job_id: str) -> None:
    """Raises DecisionNeedsEvidence for an id that is missing or names another attempt's task."""
    refuse_empty(provider_job_id, "provider_job_id")
    other = (
        ProviderJob.objects.filter(channel=attempt.channel, provider_job_id=provider_job_id)
        .select_related("attempt")
        .first()
    )
    if other is not None:
        raise TaskOfAnother(provider_job_id, other.attempt.public_id)


def _ask(attempt: Attempt, provider_job_id: str) -> JobStatus:
    answer = status_of(attempt, provider_job_id)
    if isinstance(answer, PollFailure):
        said = "does not know it" if answer.not_found else f"did not answer: {answer.detail}"
        raise NotAtProvider(f"{attempt.channel.slug} {said}.", "provider_job_id")
    return answer


def refuse_empty(value: str, field: str) -> None:
    """Raises DecisionNeedsEvidence."""
    if not value.strip():
        raise DecisionNeedsEvidence("Say what this decision rests on.", field)


def _record(attempt: Attempt, decision: str, evidence: dict[str, str], actor: Actor, now: datetime) -> None:
    change = Change(
        "decide submission",
        f"attempt:{attempt.public_id}",
        {"state": A.SUBMISSION_UNCERTAIN.value},
        {"decision": decision, **evidence},
    )
    record(actor, change, now)
