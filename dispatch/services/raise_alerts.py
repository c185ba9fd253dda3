"""What the engine tells operators, each condition under its own dedupe key."""

from datetime import datetime

from dispatch.models import Attempt, Job
from health.alerts import raise_alert, resolve_alert


def submission_uncertain(attempt: Attempt, now: datetime) -> None:
    _of_attempt("submission_uncertain", attempt, now)


def submission_abandoned(attempt: Attempt, now: datetime) -> None:
    _of_attempt("submission_abandoned", attempt, now)


def submission_resolved(attempt: Attempt, why: str, now: datetime) -> None:
    resolve_alert(_attempt_key("submission_uncertain", attempt), why, now)


def stuck_attempt(attempt: Attempt, why: str, now: datetime) -> None:
    _of_attempt("stuck_attempt", attempt, now, why=why)


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


def of_selection(codes: tuple[str, ...], job: Job, now: datetime) -> None:
    """The alerts of a decision; those of the model that it does not carry have ended."""
    slug = job.public_model.slug
    for code in ("exact_unavailable", "degradation_active", "emergency_override"):
        key = f"{code}:{slug}"
        if code in codes:
            raise_alert(
                code, subject=f"model:{slug}", dedupe_key=key, details={"job": job.public_id}, now=now
            )
        else:
            resolve_alert(key, "the model's next selection was without it", now)


def lease_drift(subject: str, counted: dict[str, int], stored: dict[str, int], now: datetime) -> None:
    raise_alert(
        "lease_drift",
        subject=subject,
        dedupe_key=f"lease_drift:{subject}",
        details={"leases": counted, "counted": stored},
        now=now,
    )


def _of_attempt(code: str, attempt: Attempt, now: datetime, **details: str) -> None:
    raise_alert(
        code,
        subject=f"attempt:{attempt.public_id}",
        dedupe_key=_attempt_key(code, attempt),
        details={"job": attempt.job.public_id, "channel": attempt.channel.slug, **details},
        now=now,
    )


def _attempt_key(code: str, attempt: Attempt) -> str:
    return f"{code}:{attempt.public_id}"
