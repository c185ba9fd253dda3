"""Brings a finished attempt's outputs into our own storage; only then is the job a success.

A generation is never repeated because an address broke: the provider is asked for a fresh one, again and
again with longer waits, and after the deadline the output is given up as lost."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from catalog.models import Channel
from catalog.providers.registry import adapter_for
from catalog.providers.types import JobStatus, OutputLocator, ProviderError, locator_from_json
from catalog.retrying import retried_as_victim
from catalog.vault import VaultError
from dispatch import backoff
from dispatch.heartbeat import CLAIM, kept_claim
from dispatch.lifecycle import AttemptState
from dispatch.models import Asset, Attempt, ProviderEvent
from dispatch.moves import Move
from dispatch.outputs.addresses import origin_of
from dispatch.outputs.limits import FetchLimits, MediaLimits
from dispatch.outputs.rehosting import Rehosted, Rehosting, RehostOutcome
from dispatch.outputs.storage import MediaStore, output_name
from dispatch.repository import claim_attempt, keep_event
from dispatch.services import raise_alerts
from dispatch.services.advance import advance
from dispatch.transport import transport_to

logger = logging.getLogger(__name__)
A = AttemptState


def rehosting(channel: Channel, outputs: int, within_s: float | None = None) -> Rehosting:
    """The installation's store and bounds; one task's time is shared by its `outputs`.

    `within_s`: less time than a task has, since somebody waits.

    The address that an operator entered for the channel may lie in a private network; nobody else's may."""
    total_s = settings.OUTPUT_FETCH_TIMEOUT_S
    return Rehosting(
        MediaStore(settings.MEDIA_DIR),
        FetchLimits(
            max_bytes=settings.OUTPUT_MAX_BYTES,
            deadline_s=min(total_s, within_s or total_s) / max(1, outputs),
            allow_private=settings.ALLOW_PRIVATE_ADDRESSES,
            trusted_origins=frozenset(origin for origin in [origin_of(channel.base_url)] if origin),
        ),
        MediaLimits(wall_s=settings.OUTPUT_VERIFY_TIMEOUT_S),
    )


def fetch_output(attempt_id: int, clock: Callable[[], datetime], until: datetime | None = None) -> None:
    """Does nothing for an attempt that is not `generated` or `fetching`, or that another worker fetches.

    `until`: when a request that waits for the output must have been answered."""
    attempt = _claim(attempt_id, clock())
    if attempt is None:
        return
    with kept_claim(attempt, clock):
        outcomes = _rehost(attempt, None if until is None else (until - clock()).total_seconds())
    _record(attempt, outcomes, clock())


def _rehost(attempt: Attempt, within_s: float | None) -> list[RehostOutcome]:
    kind = attempt.job.modality
    locators = [locator for locator in _locators(attempt) if locator.kind == kind]
    place = rehosting(attempt.channel, len(locators), within_s)
    return [
        place.from_url(locator.url, output_name(attempt.public_id, number), kind, headers=locator.headers)
        for number, locator in enumerate(locators, start=1)
    ]


def _claim(attempt_id: int, now: datetime) -> Attempt | None:
    until = now + CLAIM
    attempt = (
        Attempt.objects.select_related("job__customer", "channel", "provider_job")
        .filter(pk=attempt_id, state__in=(A.GENERATED, A.FETCHING))
        .first()
    )
    if attempt is None:
        return None
    if attempt.state == A.FETCHING:
        return attempt if claim_attempt(attempt, until) else None
    moved = advance(Move(attempt.pk, attempt.state_version, A.FETCHING, {"next_look_at": until}), now)
    if moved is None:
        return None
    attempt.state, attempt.state_version = moved.state, moved.state_version
    return attempt


def _locators(attempt: Attempt) -> list[OutputLocator]:
    """After a first failure the provider is asked for fresh addresses."""
    if attempt.recovery.get("fetches") and attempt.provider_job.polls and (fresh := _fresh_outputs(attempt)):
        return fresh
    return [locator_from_json(stored) for stored in attempt.provider_job.outputs]


def _fresh_outputs(attempt: Attempt) -> list[OutputLocator]:
    try:
        connection = transport_to(attempt.channel)
    except VaultError as error:
        logger.error("A credential can't be opened: %s", error, extra={"channel": attempt.channel.slug})  # noqa: TRY400
        return []
    with connection as transport:
        result = adapter_for(attempt.channel.provider).poll(transport, attempt.provider_job.provider_job_id)
    return list(result.outputs) if isinstance(result, JobStatus) else []


def _record(attempt: Attempt, outcomes: Sequence[RehostOutcome], now: datetime) -> None:
    stored = [outcome for outcome in outcomes if isinstance(outcome, Rehosted)]
    if outcomes and len(stored) == len(outcomes):
        try:
            _adopt(attempt, stored, now)
        except (OperationalError, InterfaceError):
            raise  # the database, and not the output
        except Exception as error:
            logger.exception("An output could not be adopted", extra={"attempt": attempt.public_id})
            _retry_or_give_up(attempt, f"not adopted: {type(error).__name__}", now)
        return
    words = [_words(outcome) for outcome in outcomes if not isinstance(outcome, Rehosted)] or ["no output"]
    _retry_or_give_up(attempt, "; ".join(words), now)


def _words(outcome: RehostOutcome) -> str:
    return str(getattr(outcome, "code", None) or getattr(outcome, "reason", "unreadable"))


@retried_as_victim
def _adopt(attempt: Attempt, stored: Sequence[Rehosted], now: datetime) -> None:
    with transaction.atomic():
        Asset.objects.bulk_create(
            [_asset(attempt, number, output, now) for number, output in enumerate(stored, start=1)],
            ignore_conflicts=True,
        )
        advance(Move(attempt.pk, attempt.state_version, A.SUCCEEDED, {"next_look_at": None}), now)
    logger.info(
        "Delivered", extra={"job": attempt.job.public_id, "attempt": attempt.public_id, "count": len(stored)}
    )


def _asset(attempt: Attempt, number: int, output: Rehosted, now: datetime) -> Asset:
    return Asset(
        customer=attempt.job.customer,
        attempt=attempt,
        number=number,
        kind=Asset.Kind.OUTPUT,
        content_type=output.media.content_type,
        size_bytes=output.stored.size_bytes,
        sha256=output.stored.sha256,
        width=output.media.width,
        height=output.media.height,
        duration_ms=output.media.duration_ms,
        path=output.stored.name,
        created_at=now,
        expires_at=kept_until(now),
    )


def kept_until(now: datetime) -> datetime | None:
    """What is stored now is kept until then, whatever the setting says later; None: for good."""
    days: int = settings.OUTPUT_RETENTION_DAYS
    return now + timedelta(days=days) if days else None


def _retry_or_give_up(attempt: Attempt, why: str, now: datetime) -> None:
    fetches = int(attempt.recovery.get("fetches", 0)) + 1
    generated_at = attempt.generated_at or now
    with transaction.atomic():
        keep_event(attempt, ProviderEvent.Kind.FETCH, "failed", {"why": why, "fetches": fetches}, now)
        if now - generated_at >= timedelta(seconds=settings.OUTPUT_FETCH_DEADLINE_S):
            error = ProviderError("supply", "supply", False, "output_expired", f"output lost: {why}")
            moved = advance(
                Move(attempt.pk, attempt.state_version, A.FAILED, {"next_look_at": None}, error), now
            )
            if moved is not None:
                raise_alerts.output_lost(moved, why, now)
            return
        again = now + timedelta(seconds=backoff.fetch_failed_s(fetches - 1))
        if claim_attempt(attempt, again):
            Attempt.objects.filter(pk=attempt.pk).update(recovery={**attempt.recovery, "fetches": fetches})
