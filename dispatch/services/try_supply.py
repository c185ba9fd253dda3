"""One paid call that tries a supply: asked for by an operator, sent once by a worker, looked at when asked.

It belongs to no job: it takes no slot of ours, and says nothing to health. Like an attempt it is never sent a
second time; what became of a call whose worker was lost is unknown, and stays so."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django_q.tasks import async_task

from billing.ledger import ProviderCost, correct_cost
from catalog.audit import Actor, Change, record
from catalog.providers.errors import AUTH, error_of
from catalog.providers.redaction import redacted
from catalog.providers.registry import adapter_for
from catalog.providers.types import (
    Accepted,
    JobStatus,
    PollFailure,
    PollResult,
    Rejected,
    SubmitOutcome,
    plan_from_json,
)
from catalog.retrying import retried_as_victim
from catalog.sessions import drop_broken_session
from catalog.vault import VaultError
from dispatch.models import TrialCall, TrialState
from dispatch.transport import access_to, transport_for_sending, transport_to

logger = logging.getLogger(__name__)
Clock = Callable[[], datetime]
_DETAIL = 500
_ENDED = {"succeeded": TrialState.SUCCEEDED, "failed": TrialState.FAILED}
_ENDED |= dict.fromkeys(("cancelled", "expired"), TrialState.FAILED)


@transaction.atomic
def ask_trial(trial: TrialCall, *, actor: Actor, now: datetime) -> TrialCall:
    """`trial` is unsaved and compiled. A worker sends it once this has been committed."""
    trial.asked_by, trial.asked_at = actor.name, now
    trial.client_request_key = trial.public_id
    trial.save(force_insert=True)
    told = {"trial": trial.public_id, "quote_micros": trial.quote_micros, "currency": trial.quote_currency}
    _record(trial, "try supply", told, actor, now)
    async_task("dispatch.tasks.send_trial", trial.pk, cluster="traffic")
    return trial


def send_trial(trial_id: int, clock: Clock) -> None:
    """Does nothing when it was sent: a task may be delivered twice."""
    waiting = TrialCall.objects.filter(pk=trial_id, state=TrialState.ASKED)
    if not waiting.update(state=TrialState.SENDING, sent_at=clock()):
        return
    trial = TrialCall.objects.select_related("supply__channel").get(pk=trial_id)
    outcome = _sent(trial)
    drop_broken_session()  # nobody else has this answer, and it may have been paid for
    _record_sent(trial, outcome, clock())
    logger.info("Tried a supply: %s", type(outcome).__name__.lower(), extra={"supply": trial.supply.slug})


@retried_as_victim
@transaction.atomic
def _record_sent(trial: TrialCall, outcome: SubmitOutcome, now: datetime) -> None:
    _keep(trial, TrialState.SENDING, _changes_of(outcome), now)
    if isinstance(outcome, Accepted):
        _book(trial, trial.quote_micros, now)


def _sent(trial: TrialCall) -> SubmitOutcome:
    channel = trial.supply.channel
    try:
        connection = transport_for_sending(access_to(channel))
    except VaultError as error:
        return Rejected(error_of(AUTH, f"the credential can't be opened: {error}"), "connecting")
    with connection as transport:
        return adapter_for(channel.provider).submit(
            transport, plan_from_json(trial.compile_plan), trial.client_request_key, before_send=_allowed
        )


def _allowed() -> None:
    """Nobody else can have this call: there is no lease to lose."""


def _changes_of(outcome: SubmitOutcome) -> dict[str, Any]:
    if isinstance(outcome, Accepted):
        state = TrialState.SUCCEEDED if outcome.outputs else TrialState.ACCEPTED
        answer = {**outcome.raw, "outputs": len(outcome.outputs)} if outcome.outputs else dict(outcome.raw)
        return {"state": state, "provider_job_id": outcome.provider_job_id, "answer": answer, "detail": ""}
    if isinstance(outcome, Rejected):
        error, said = outcome.error, _said(outcome.error.code, outcome.error.message)
        return {"state": TrialState.REFUSED, "answer": dict(error.raw), "detail": said}
    said = _said(outcome.stage, outcome.detail)
    return {"state": TrialState.UNKNOWN, "answer": dict(outcome.raw), "detail": said}


def look_at_trial(trial: TrialCall, clock: Clock, actor: Actor) -> bool:
    """Asks the provider how far it is; reads only. False: it has ended, or the provider did not answer.

    Raises nothing for what a provider says. The network is outside any transaction."""
    if trial.state != TrialState.ACCEPTED:
        return False
    answer = _asked(trial)
    now = clock()
    with transaction.atomic():
        _record(trial, "look at trial", {"trial": trial.public_id}, actor, now)
        if isinstance(answer, PollFailure):
            _keep(trial, TrialState.ACCEPTED, {"detail": _said("no_answer", answer.detail)}, now)
            return False
        changes = _changes_by(answer)
        moved = _keep(trial, TrialState.ACCEPTED, changes, now)
        if moved and changes["state"] == TrialState.FAILED and _is_free(trial):
            _book(trial, -(trial.quote_micros or 0), now)
    return True


def _asked(trial: TrialCall) -> PollResult:
    channel = trial.supply.channel
    try:
        with transport_to(channel) as transport:
            return adapter_for(channel.provider).poll(transport, trial.provider_job_id)
    except VaultError as error:
        return PollFailure(not_found=False, detail=f"the credential can't be opened: {error}")


def _changes_by(answer: JobStatus) -> dict[str, Any]:
    told = {**answer.raw, "outputs": len(answer.outputs)} if answer.outputs else dict(answer.raw)
    error = answer.error
    return {
        "state": _ENDED.get(answer.status, TrialState.ACCEPTED),
        "answer": told,
        "detail": _said(error.code, error.message) if error else "",
    }


def _said(code: str, words: str) -> str:
    return f"{code}: {words}"[:_DETAIL] if words else code


def _keep(trial: TrialCall, state: TrialState, changes: dict[str, Any], now: datetime) -> bool:
    """False: somebody was first."""
    values = {**changes, "answered_at": now}
    if "answer" in values:
        values["answer"] = redacted(values["answer"])
    return TrialCall.objects.filter(pk=trial.pk, state=state).update(**values) > 0


def _is_free(trial: TrialCall) -> bool:
    version = trial.cost_rule_version
    return version is not None and bool(version.document.get("free_on_failure", True))


def _book(trial: TrialCall, micros: int | None, now: datetime) -> None:
    """Ours: no customer pays for it, and the provider's bill will hold it."""
    if trial.cost_rule_version_id is None or not micros:
        return
    booked = ProviderCost(
        attempt=trial.public_id,
        supply_id=trial.supply_id,
        cost_rule_version_id=trial.cost_rule_version_id,
        amount_micros=micros,
        currency=trial.quote_currency,
        platform_loss=True,
        details={"trial": trial.public_id},
    )
    correct_cost(booked, now)


def _record(trial: TrialCall, action: str, after: dict[str, Any], actor: Actor, now: datetime) -> None:
    record(actor, Change(action, f"supply:{trial.supply.public_id}", after=after), now)
