"""Once a minute: ends the alerts whose end nothing else notices; the rules are told in docs/alerts.md."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, CapacityLease
from dispatch.services.raise_alerts import OF_SELECTION
from health.alerts import open_subjects, resolve_alerts, resolve_unseen

A = AttemptState
_HELD = Exists(CapacityLease.objects.filter(attempt=OuterRef("pk"), released_at=None))

# The attempts that an alert about them still holds for, and why it ends.
LASTS: Mapping[str, tuple[Q, str]] = {
    "submission_uncertain": (Q(state=A.SUBMISSION_UNCERTAIN), "the outcome is known, or was given up"),
    "stuck_attempt": (Q(state=A.OUTCOME_UNCERTAIN), "the outcome is known, or was given up"),
    "submission_abandoned": (
        Q(state=A.ABANDONED) & (Q(next_look_at__isnull=False) | Q(_HELD)),
        "its slot is free and the look-ups are over",
    ),
}
# What is only ever seen when it happens ends when it was not seen for so long.
QUIET = (
    (OF_SELECTION, timedelta(minutes=15), "the model had no selection for 15 minutes"),
    (("unknown_slots_full",), timedelta(minutes=15), "nothing is routed there any more"),
    (
        (
            "output_lost",
            "unknown_provider_status",
            "capability_mismatch",
            "reconciliation_delta",
            "sale_price_missing",
        ),
        timedelta(days=1),
        "it was not seen again for a day",
    ),
    (("unmatched_charge",), timedelta(days=35), "the provider's bill of that time has come"),
)


def resolve_ended(now: datetime) -> None:
    for code, (lasts, why) in LASTS.items():
        _of_attempts(code, lasts, why, now)
    for codes, spell, why in QUIET:
        resolve_unseen(codes, now - spell, why, now)


def _of_attempts(code: str, lasts: Q, why: str, now: datetime) -> None:
    ids = {subject.removeprefix("attempt:") for subject in open_subjects(code)}
    if ids:
        go_on = Attempt.objects.filter(lasts, public_id__in=ids).values_list("public_id", flat=True)
        resolve_alerts([f"{code}:{each}" for each in ids - set(go_on)], why, now)
