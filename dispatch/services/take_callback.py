"""Takes what a provider says unasked: proves it, stores it once, and has the attempt looked at.

A body that its provider signed is believed like a poll's answer. Of any other only the address is proved: it
is a hint that a poll is due, and what the poll says is recorded."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db import IntegrityError, transaction

from catalog.models import Channel
from catalog.providers.redaction import cleaned
from catalog.providers.registry import ADAPTERS
from catalog.providers.types import CallbackEvent, CallbackInvalid
from catalog.vault import VaultError
from dispatch.lifecycle import AT_PROVIDER_STATES, FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, ProviderEvent, ProviderJob, RejectedCallback
from dispatch.repository import claim_attempt, locked_attempt
from dispatch.services.raise_alerts import unmatched_charge
from dispatch.services.record_poll import record_poll
from dispatch.services.settle import book_loss
from dispatch.transport import access_to

logger = logging.getLogger(__name__)
REJECTED_A_MINUTE: Final = 30  # that are stored; more tell nothing new
REJECTED_KEPT: Final = 1_000
_LOOKED_AT_AGAIN = AT_PROVIDER_STATES | {AttemptState.SUBMISSION_UNCERTAIN, AttemptState.ABANDONED}


class Taken(StrEnum):
    STORED = "stored"
    KNOWN = "known"  # it had come before: nothing more happens
    REJECTED = "rejected"
    UNREADABLE = "unreadable"  # by us, for now: the provider may call again


@dataclass(frozen=True, slots=True)
class Called:
    """A call to a place that is ours. Header names in small letters."""

    provider: str
    channel: str  # public id
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = field(repr=False)


def take_callback(called: Called, now: datetime) -> Taken:
    """Early, twice, late, out of order or of another attempt: each is stored and changes nothing more than
    what the provider's own answer to a poll would."""
    channel = Channel.objects.filter(public_id=called.channel, provider=called.provider).first()
    adapter = ADAPTERS.get(called.provider)
    if channel is None or adapter is None:
        return _reject(called.provider, None, "no channel of this provider", called.body, now)
    try:
        access = access_to(channel)
    except VaultError:
        logger.exception("A callback can't be verified", extra={"channel": channel.slug})
        return Taken.UNREADABLE
    event = adapter.parse_callback(called.headers, called.body, query=called.query, access=access, now=now)
    if isinstance(event, CallbackInvalid):
        return _reject(called.provider, channel, event.reason, called.body, now)
    attempt = _attempt_of(channel, event)
    if isinstance(attempt, CallbackInvalid):
        return _reject(called.provider, channel, attempt.reason, called.body, now)
    return _take(channel, attempt, event, adapter.capabilities.callback_signature == "provider", now)


def _take(
    channel: Channel, attempt: Attempt | None, event: CallbackEvent, is_believed: bool, now: datetime
) -> Taken:
    with transaction.atomic():
        if not _store(channel, attempt, event, now):
            return Taken.KNOWN
        if attempt is not None:
            _look_soon(attempt, event, now)
    if attempt is not None and is_believed and attempt.state in AT_PROVIDER_STATES:
        _believe(attempt, event, now)
    return Taken.STORED


def _attempt_of(channel: Channel, event: CallbackEvent) -> Attempt | CallbackInvalid | None:
    """By our key, which a call that overtakes the submission's answer carries too; else by the provider's id.
    None: a signed call of a job that we don't know (yet)."""
    owner = ProviderJob.objects.filter(channel=channel, provider_job_id=event.provider_job_id).first()
    if event.client_request_key is None:
        return owner.attempt if owner else None
    attempt = Attempt.objects.filter(channel=channel, client_request_key=event.client_request_key).first()
    if attempt is None:
        return CallbackInvalid("no attempt of this channel has that key")
    known = ProviderJob.objects.filter(attempt=attempt).first()
    if (owner is not None and owner.attempt_id != attempt.pk) or (
        known is not None and known.provider_job_id != event.provider_job_id
    ):
        return CallbackInvalid("the job that it tells of is not this attempt's")
    return attempt


def _store(channel: Channel, attempt: Attempt | None, event: CallbackEvent, now: datetime) -> bool:
    """False where the same event was stored before; of two at once one is stored."""
    row = ProviderEvent(
        attempt=attempt,
        channel=channel,
        kind=ProviderEvent.Kind.CALLBACK,
        outcome=event.status.status,
        raw={"provider_job_id": event.provider_job_id, "raw": dict(event.status.raw)},
        event_id=event.event_id[:200],
        at=now,
    )
    if ProviderEvent.objects.filter(channel=channel, event_id=row.event_id).exists():
        return False
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _look_soon(attempt: Attempt, event: CallbackEvent, now: datetime) -> None:
    """Of one that had been taken as never created it proves that it was, and is charged."""
    present = locked_attempt(attempt.pk)
    if present.state in _LOOKED_AT_AGAIN:
        claim_attempt(present, now)
    elif present.state in FINAL_ATTEMPT_STATES and present.accepted_at is None:
        book_loss(present, now)
        unmatched_charge(present, event.provider_job_id, now)


def _believe(attempt: Attempt, event: CallbackEvent, now: datetime) -> None:
    """What can't be recorded is asked for at the next poll, which is due by now."""
    try:
        record_poll(attempt, event.status, now)
    except Exception:
        logger.exception("A callback could not be recorded", extra={"attempt": attempt.public_id})


def reject_stranger(provider: str, body: bytes, now: datetime) -> None:
    """A call to a place that we never gave to anybody."""
    _reject(provider, None, "no place of ours", body, now)


def _reject(provider: str, channel: Channel | None, reason: str, body: bytes, now: datetime) -> Taken:
    """Kept without its words, which are anybody's, and only so many a minute."""
    lately = RejectedCallback.objects.filter(at__gt=now - timedelta(minutes=1))
    if lately.count() < REJECTED_A_MINUTE:
        RejectedCallback.objects.create(
            provider=provider[:40],
            channel=channel,
            reason=cleaned(reason, 200),
            size_bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            at=now,
        )
        logger.warning("A callback was rejected: %s", cleaned(reason, 200), extra={"provider": provider[:40]})
    return Taken.REJECTED


def trim_rejected() -> int:
    """Deletes all but the newest; how many."""
    oldest = RejectedCallback.objects.order_by("-at", "-id")[REJECTED_KEPT : REJECTED_KEPT + 1].first()
    if oldest is None:
        return 0
    return RejectedCallback.objects.filter(at__lte=oldest.at).delete()[0]
