"""What the engine tells operators, each condition under its own dedupe key."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from billing.money import written
from billing.reported import Cost
from dispatch.models import Attempt, Job, Maintenance
from dispatch.unknown_slots import UnknownSlots
from health.alerts import raise_alert, resolve_alert, resolve_alerts
from health.replay import moment

NO_DISPATCHER = "no_dispatcher"
REPLAY_DIFFERENCE = "replay_difference"
MAINTENANCE_ENDING = "maintenance_ending"
TOLD_OF_A_REPLAY = 10  # rounds that one alert names
OF_SELECTION = ("exact_unavailable", "degradation_active", "emergency_override")


def submission_uncertain(attempt: Attempt, now: datetime) -> None:
    _of_attempt("submission_uncertain", attempt, now)


def submission_abandoned(attempt: Attempt, now: datetime) -> None:
    _of_attempt("submission_abandoned", attempt, now)


def submission_resolved(attempt: Attempt, why: str, now: datetime) -> None:
    resolve_alert(_attempt_key("submission_uncertain", attempt), why, now)


def stuck_attempt(attempt: Attempt, why: str, now: datetime) -> None:
    _of_attempt("stuck_attempt", attempt, now, why=why)


def attempt_unstuck(attempt: Attempt, why: str, now: datetime) -> None:
    resolve_alert(_attempt_key("stuck_attempt", attempt), why, now)


def output_lost(attempt: Attempt, why: str, now: datetime) -> None:
    _of_attempt("output_lost", attempt, now, why=why)


def unknown_provider_status(attempt: Attempt, raw_status: str, now: datetime) -> None:
    """Once for each word of each provider."""
    provider = attempt.channel.provider
    raise_alert(
        "unknown_provider_status",
        subject=f"provider:{provider}",
        dedupe_key=f"unknown_provider_status:{provider}:{raw_status[:60]}",
        details={"raw_status": raw_status[:60], "attempt": attempt.public_id},
        now=now,
    )


def capability_mismatch(attempt: Attempt, now: datetime) -> None:
    """Once for each supply: the provider refused what the supply's published capability promises."""
    subject = f"supply:{attempt.supply.slug}"
    raise_alert(
        "capability_mismatch",
        subject=subject,
        dedupe_key=f"capability_mismatch:{subject}",
        details={"attempt": attempt.public_id, "capability": attempt.capability_version.public_id},
        now=now,
    )


def unmatched_charge(attempt: Attempt, provider_job_id: str, now: datetime) -> None:
    """The provider has, and charges, what was given up here: it is booked as a loss, and no job got it."""
    _of_attempt(
        "unmatched_charge",
        attempt,
        now,
        provider_job=provider_job_id,
        booked=f"{written(attempt.quote_micros)} {attempt.quote_currency}",
    )


def cost_in_doubt(attempt: Attempt, cost: Cost, now: datetime) -> None:
    """A provider reports another cost than was quoted, or one that can't be; once for each supply."""
    supply = f"supply:{attempt.supply.slug}"
    raise_alert(
        "reconciliation_delta",
        subject=supply,
        dedupe_key=f"reconciliation_delta:{supply}",
        details={
            "attempt": attempt.public_id,
            "why": cost.doubt,
            "reported": cost.reported,
            "booked": f"{written(cost.micros)} {attempt.quote_currency}",
            "quoted": f"{written(attempt.quote_micros)} {attempt.quote_currency}",
        },
        now=now,
    )


def sale_price_missing(job: Job, now: datetime) -> None:
    """A result of a lesser profile was delivered, and the model has no price for it: nothing was charged."""
    model = f"model:{job.public_model.slug}"
    raise_alert(
        "sale_price_missing",
        subject=model,
        dedupe_key=f"sale_price_missing:{model}",
        details={"job": job.public_id, "profile": job.actual_profile, "currency": job.customer.currency},
        now=now,
    )


def of_selections(last: Iterable[tuple[Job, tuple[str, ...]]], now: datetime) -> None:
    """The alerts of each model's last decision; what ended of all of them ends in one statement."""
    ended = []
    for job, codes in last:
        ended += _raised_of_model(job.public_model.slug, codes, {"job": job.public_id}, now)
    _end_of_models(ended, now)


def of_model(slug: str, codes: tuple[str, ...], details: dict[str, str], now: datetime) -> None:
    """Those of the model that its last decision does not carry have ended."""
    _end_of_models(_raised_of_model(slug, codes, details, now), now)


def _raised_of_model(slug: str, codes: tuple[str, ...], details: dict[str, str], now: datetime) -> list[str]:
    """The keys of those that the decision does not carry."""
    ended = []
    for code in OF_SELECTION:
        key = f"{code}:{slug}"
        if code in codes:
            raise_alert(code, subject=f"model:{slug}", dedupe_key=key, details=details, now=now)
        else:
            ended.append(key)
    return ended


def _end_of_models(keys: list[str], now: datetime) -> None:
    resolve_alerts(keys, "the model's next selection was without it", now)


def unknown_slots_full(found: Mapping[str, UnknownSlots], now: datetime) -> None:
    """By `channel:slug` or `supply:slug`; those that have room again have ended.

    In one order: an image's transaction raises the same ones beside the scan's."""
    code = "unknown_slots_full"
    for subject, slots in sorted(found.items(), key=lambda each: each[0]):
        if slots.is_full:
            details = {"held": slots.held, "limit": slots.limit}
            raise_alert(code, subject=subject, dedupe_key=f"{code}:{subject}", details=details, now=now)
    ended = [f"{code}:{subject}" for subject, slots in found.items() if not slots.is_full]
    resolve_alerts(ended, "fewer outcomes are unknown", now)


def maintenance_ending(maintenance: Maintenance, now: datetime) -> None:
    """Its end is near, or past and nobody came."""
    subject = f"channel:{maintenance.channel.slug}"
    raise_alert(
        MAINTENANCE_ENDING,
        subject=subject,
        dedupe_key=f"{MAINTENANCE_ENDING}:{subject}",
        details={
            "until": moment(maintenance.until_at),
            "started_by": maintenance.started_by,
            "why": maintenance.reason,
            "maintenance": maintenance.public_id,
        },
        now=now,
    )


def maintenance_over(channel: str, why: str, now: datetime) -> None:
    """`channel` by slug."""
    resolve_alert(f"{MAINTENANCE_ENDING}:channel:{channel}", why, now)


def no_dispatcher(cluster: str, last_scan_at: datetime | None, now: datetime) -> None:
    raise_alert(
        NO_DISPATCHER,
        subject=f"cluster:{cluster}",
        dedupe_key=NO_DISPATCHER,
        details={"last_scan_at": moment(last_scan_at) if last_scan_at else None},
        now=now,
    )


def dispatcher_is_back(now: datetime) -> None:
    resolve_alert(NO_DISPATCHER, "the dispatcher scans again", now)


def lease_drift(
    subject: str, stored: Mapping[str, object], counted: Mapping[str, object], now: datetime
) -> None:
    raise_alert(
        "lease_drift",
        subject=subject,
        dedupe_key=f"lease_drift:{subject}",
        details={"leases": counted, "counted": stored},
        now=now,
    )


def queue_drift(
    subject: str,
    service_class: str,
    stored: Mapping[str, object],
    counted: Mapping[str, object],
    now: datetime,
) -> None:
    raise_alert(
        "queue_drift",
        subject=subject,
        dedupe_key=f"queue_drift:{subject}:{service_class}",
        details={"service_class": service_class, "jobs": counted, "counted": stored},
        now=now,
    )


def replay_difference(differing: Mapping[str, str], replayed: int, now: datetime) -> None:
    """`differing`: the first difference of each round, by its public id."""
    shown = dict(list(differing.items())[:TOLD_OF_A_REPLAY])
    raise_alert(
        REPLAY_DIFFERENCE,
        subject="routing:replay",
        dedupe_key=REPLAY_DIFFERENCE,
        details={"replayed": replayed, "differing": len(differing), "rounds": shown},
        now=now,
    )


def replays_agree(now: datetime) -> None:
    resolve_alert(REPLAY_DIFFERENCE, "the rounds in question come out as recorded", now)


def _of_attempt(code: str, attempt: Attempt, now: datetime, **details: str) -> None:
    raise_alert(
        code,
        subject=f"attempt:{attempt.public_id}",
        dedupe_key=_attempt_key(code, attempt),
        details={
            "job": attempt.job.public_id,
            "supply": attempt.supply.slug,  # strips name it, and ask no further
            "channel": attempt.channel.slug,
            **details,
        },
        now=now,
    )


def _attempt_key(code: str, attempt: Attempt) -> str:
    return f"{code}:{attempt.public_id}"
