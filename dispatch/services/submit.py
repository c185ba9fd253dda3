"""Sends attempts to their providers, each once.

Claim in a transaction that checks the final guard; then the network, outside any transaction; then record
what came back. Whatever breaks between claim and record leaves `submitting`, which only the reconciler
moves, to `submission_uncertain`: nothing here or anywhere posts a second time."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.db import transaction

from billing.authentication import is_usable
from catalog.models import AdminState, Channel
from catalog.providers.errors import ASSET_UNAVAILABLE, AUTH, NOT_CREATED, ErrorKind, error_of
from catalog.providers.registry import adapter_for
from catalog.providers.types import (
    AdapterCapabilities,
    ChannelAccess,
    CompilePlan,
    ProviderError,
    Rejected,
    SubmitOutcome,
    plan_from_json,
)
from catalog.retrying import retried_as_victim
from catalog.statements import prepared
from catalog.vault import VaultError
from dispatch import capacity
from dispatch.departures import Departure, depart
from dispatch.heartbeat import kept_leases
from dispatch.held_channels import held_until
from dispatch.inputs.delivery import InputLost, with_inputs
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease
from dispatch.moves import Move
from dispatch.repository import locked_attempts
from dispatch.sending import Sender
from dispatch.services.advance import advance_locked
from dispatch.services.record_submission import record_submissions
from dispatch.transport import access_to, transport_for_sending

logger = logging.getLogger(__name__)
A = AttemptState
Clock = Callable[[], datetime]


def submit(attempt_ids: Collection[int], clock: Clock, until: datetime | None = None) -> None:
    """Does nothing with attempts that are no longer `ready`: a task may be delivered twice.

    `until`: when a request whose own thread this is must have been answered."""
    claimed = _claim(attempt_ids, clock())
    if not claimed:
        return
    broken: list[Exception] = []
    opened = cache(access_to)  # each credential once, whichever attempts share it
    with kept_leases(claimed, clock), Sender() as sender:
        departures = [Departure(attempt, _posting(attempt, opened, clock(), until)) for attempt in claimed]
        for ended in depart(departures, lambda asking: _allow(asking, sender, clock())):
            sender.has_sent(each.attempt.pk for each in ended)
            broken += [each.outcome for each in ended if isinstance(each.outcome, Exception)]
            broken += record_submissions(ended, clock())
    if broken:
        raise broken[0] if len(broken) == 1 else ExceptionGroup("submissions broke", broken)


@retried_as_victim
def _claim(attempt_ids: Collection[int], now: datetime) -> list[Attempt]:
    """`ready → submitting` for those that the guard still lets go; the others move as it asks. What holds no
    lease stays as it is."""
    with transaction.atomic():
        seen = locked_attempts(attempt_ids, to_send=True).values()
        ready = [attempt for attempt in seen if attempt.state == A.READY]
        leases = CapacityLease.objects.filter(attempt__in=ready, released_at=None)
        fences: dict[int, int] = dict(leases.values_list("attempt", "fence"))
        held = capacity.renew(fences, now, now + capacity.LEASE_TTL)
        closed = held_until(now)
        wishes = [(attempt, _guarded(attempt, closed, now)) for attempt in ready if attempt.pk in held]
        moved = advance_locked(wishes, now)
    return [attempt for attempt in moved if attempt is not None and attempt.state == A.SUBMITTING]


def _guarded(attempt: Attempt, closed: Collection[str], now: datetime) -> Move:
    """To `submitting`, or where the guard sends it."""
    stopped = _guard(attempt, closed, now)
    return stopped or Move(attempt.pk, attempt.state_version, A.SUBMITTING, _beginning(attempt, now))


def _beginning(attempt: Attempt, now: datetime) -> dict[str, Any]:
    """The execution deadline runs from here also for what is never known to be accepted: it may run."""
    execution = timedelta(seconds=attempt.policy.execution_s(attempt.supply.modality))
    return {"request_started_at": now, "execution_deadline_at": now + execution}


def _guard(attempt: Attempt, closed: Collection[str], now: datetime) -> Move | None:
    """The last look before money is spent: the customer's side cancels, the supply's side fails."""
    job, wish = attempt.job, (attempt.pk, attempt.state_version)
    if job.cancel_requested_at is not None:
        return Move(*wish, A.CANCELLED)
    if not is_usable(job.api_key, now):
        return Move(*wish, A.CANCELLED, access_revoked=True)
    if now >= job.dispatch_deadline_at:
        return Move(*wish, A.CANCELLED)
    return stopped_by_supply(attempt, closed)


def stopped_by_supply(attempt: Attempt, closed: Collection[str]) -> Move | None:
    """The supply's side of the guard: what an operator disabled since is not sent to, nor a channel where
    the outcomes of submissions pile up unknown. `closed`: those channels, as `held_until` says."""
    if AdminState.DISABLED in (attempt.supply.state, attempt.channel.state):
        why = "disabled before it was sent"
    elif attempt.channel.slug in closed:
        why = "held back before it was sent: too many submissions of the channel end unknown"
    else:
        return None
    error = ProviderError("capacity", "supply", True, "not_created", why)
    return Move(attempt.pk, attempt.state_version, A.FAILED, error=error)


def _posting(
    attempt: Attempt, opened: Callable[[Channel], ChannelAccess], now: datetime, until: datetime | None
) -> Callable[[Callable[[], None]], SubmitOutcome]:
    """The call with everything that it takes from the database and the vault: it is made elsewhere. What
    can't be prepared is never sent, and keeps no other of its batch from being."""
    within_s = None if until is None else (until - now).total_seconds()
    try:
        adapter = adapter_for(attempt.channel.provider)
        plan = _plan_to_send(attempt, adapter.capabilities, now)
        transport = transport_for_sending(opened(attempt.channel), within_s)
    except InputLost as error:
        return _unsent(ASSET_UNAVAILABLE, str(error))
    except VaultError as error:
        return _unsent(AUTH, f"the credential can't be opened: {error}")
    except Exception as error:
        logger.exception("A submission could not be prepared", extra={"attempt": attempt.public_id})
        return _unsent(NOT_CREATED, f"its preparation broke: {type(error).__name__}")
    return lambda ask: adapter.submit(transport, plan, attempt.client_request_key, before_send=ask)


def _unsent(kind: ErrorKind, why: str) -> Callable[[Callable[[], None]], SubmitOutcome]:
    rejected = Rejected(error_of(kind, why), "connecting")
    return lambda _: rejected


def _plan_to_send(attempt: Attempt, adapter: AdapterCapabilities, now: datetime) -> CompilePlan:
    """Addresses of uploaded files are signed here, at each sending: none is old when it leaves."""
    return with_inputs(plan_from_json(attempt.compile_plan), attempt.job.customer_id, adapter, now)


_ALLOW = """
UPDATE dispatch_attempt AS attempt SET body_sent_at = %(now)s
FROM unnest(%(ids)b::bigint[], %(versions)b::int[]) AS mine(id, version)
WHERE attempt.id = mine.id AND attempt.state_version = mine.version AND attempt.state = 'submitting'
  AND EXISTS (
    SELECT FROM dispatch_capacitylease AS lease
    WHERE lease.attempt_id = attempt.id AND lease.released_at IS NULL AND lease.expires_at > %(now)s)
RETURNING attempt.id"""


def _allow(attempts: Sequence[Attempt], sender: Sender, now: datetime) -> set[int]:
    """Called when the connections stand and no byte is sent; who may send. A process that was stopped for a
    minute finds here that a lease ran out or that the reconciler took the attempt, and sends nothing."""
    ids = [attempt.pk for attempt in attempts]
    sender.announce(ids)
    versions = [attempt.state_version for attempt in attempts]
    with prepared() as cursor:
        cursor.execute(_ALLOW, {"ids": ids, "versions": versions, "now": now})
        return {attempt for (attempt,) in cursor.fetchall()}
