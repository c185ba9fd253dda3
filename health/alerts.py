"""The one door to alerts: raise, resolve, acknowledge.

An alert is a condition: one row while it lasts, however often it is seen; a new one when it returns."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from health.deliveries import queue_deliveries
from health.models import Alert, Severity

_WARNING, _CRITICAL = Severity.WARNING, Severity.CRITICAL

SEVERITIES: Mapping[str, Severity] = {
    "exact_unavailable": _WARNING,
    "degradation_active": _WARNING,
    "emergency_override": _CRITICAL,
    "channel_circuit_open": _WARNING,
    "supply_circuit_open": _WARNING,
    "submission_uncertain": _WARNING,
    "submission_abandoned": _CRITICAL,
    "unknown_slots_full": _CRITICAL,
    "lease_drift": _CRITICAL,
    "queue_drift": _WARNING,
    "model_not_published": _WARNING,
    "replay_difference": _CRITICAL,  # a stored selection, routed again, comes out otherwise
    "output_lost": _CRITICAL,
    "stuck_attempt": _WARNING,
    "refusal_first": _WARNING,
    "refusal_frozen": _CRITICAL,
    "unknown_provider_status": _WARNING,
    "cost_per_success_over": _WARNING,
    "reconciliation_delta": _WARNING,
    "sale_price_missing": _WARNING,
    "no_dispatcher": _CRITICAL,
    "credential_expiring": _WARNING,
    "maintenance_ending": _WARNING,
    "capability_mismatch": _WARNING,
    "unmatched_charge": _CRITICAL,
    "submission_unknown_surge": _CRITICAL,
    "provider_errors_and_timeouts": _WARNING,
    "failover_rate_high": _WARNING,
    "safety_rate_shift": _WARNING,
    "latency_over_baseline": _WARNING,
}

_ACKNOWLEDGEMENT = ("acknowledged_at", "acknowledged_by", "note")
_FIRST = ("first_acknowledged_at", "first_acknowledged_by", "first_note")
_RERAISED = (*_ACKNOWLEDGEMENT, *_FIRST, "reraised_at", "reraises")


def raise_alert(
    code: str, *, subject: str, dedupe_key: str, details: Mapping[str, Any], now: datetime
) -> Alert:
    """The open alert of `dedupe_key`: counted once more where there is one, else opened.

    `subject` is `kind:public id or slug`; `details` are ids and numbers, never a prompt or a secret.
    Raises KeyError for a code that is not in SEVERITIES. Safe when several transactions raise it at once."""
    alert = Alert(
        code=code,
        severity=SEVERITIES[code],
        subject=subject,
        dedupe_key=dedupe_key,
        details=dict(details),
        opened_at=now,
        last_seen_at=now,
    )
    with transaction.atomic(savepoint=False):
        while not _seen_again(alert):
            Alert.objects.bulk_create([alert], ignore_conflicts=True)
            if opened := Alert.objects.filter(public_id=alert.public_id).first():
                queue_deliveries(opened, now)
                return opened
        return Alert.objects.unresolved().get(dedupe_key=dedupe_key)


def _seen_again(alert: Alert) -> bool:
    """What is said of an alert is what was seen last."""
    still_open = Alert.objects.unresolved().filter(dedupe_key=alert.dedupe_key)
    changed = still_open.update(
        count=F("count") + 1,
        last_seen_at=Greatest(F("last_seen_at"), Value(alert.last_seen_at)),
        details=alert.details,
    )
    return changed > 0


def resolve_alert(dedupe_key: str, why: str, now: datetime) -> bool:
    """Ends the open alert of `dedupe_key`; false where none is open, a normal answer."""
    return resolve_alerts([dedupe_key], why, now) > 0


def resolve_alerts(dedupe_keys: Collection[str], why: str, now: datetime) -> int:
    """Ends those of `dedupe_keys` that are open, and says how many."""
    still_open = Alert.objects.unresolved().filter(dedupe_key__in=dedupe_keys)
    return still_open.update(**_resolved(why, now))


def resolve_unseen(codes: Collection[str], since: datetime, why: str, now: datetime) -> int:
    """Ends the open alerts of `codes` that nobody has seen since, and says how many.

    One that is just being raised again is left alone."""
    unseen = Alert.objects.unresolved().filter(code__in=codes, last_seen_at__lt=since)
    with transaction.atomic():
        found = list(unseen.select_for_update(skip_locked=True).values_list("pk", flat=True))
        return Alert.objects.filter(pk__in=found).update(**_resolved(why, now))


def resolve_all_but(code: str, dedupe_keys: Collection[str], why: str, now: datetime) -> int:
    """Ends the open alerts of `code` whose condition was not found this time, and says how many."""
    others = Alert.objects.unresolved().filter(code=code).exclude(dedupe_key__in=dedupe_keys)
    return others.update(**_resolved(why, now))


def _resolved(why: str, now: datetime) -> dict[str, Any]:
    """Whoever tells more than an alert holds, as an operator's finding may, has it in the audit in full."""
    most = Alert._meta.get_field("resolved_why").max_length or len(why)
    return {"resolved_at": now, "resolved_why": why[:most]}


def open_subjects(code: str) -> set[str]:
    """What the open alerts of `code` are about, as `kind:public id or slug`."""
    return set(Alert.objects.unresolved().filter(code=code).values_list("subject", flat=True))


def acknowledge(alert_id: int, by: str, note: str, now: datetime) -> bool:
    """Says who works on it; never resolves it. False: somebody was first, and their name stays."""
    waiting = Alert.objects.filter(pk=alert_id, acknowledged_at=None)
    return waiting.update(acknowledged_at=now, acknowledged_by=by, note=note) > 0


def reraise_acknowledged(until: datetime, now: datetime) -> int:
    """Raises critical alerts again that were acknowledged `until` then and still fire, and says how many.

    It still fires: it is open, and was seen after somebody acknowledged it. What happened once and is not
    seen again (a lost output, a frozen content) is in good hands. The first acknowledgement stays."""
    still_fires = Alert.objects.unresolved().filter(
        severity=Severity.CRITICAL, acknowledged_at__lte=until, last_seen_at__gt=F("acknowledged_at")
    )
    with transaction.atomic():
        found = list(still_fires.select_for_update(skip_locked=True))
        for alert in found:
            if alert.first_acknowledged_at is None:
                alert.first_acknowledged_at = alert.acknowledged_at
                alert.first_acknowledged_by, alert.first_note = alert.acknowledged_by, alert.note
            alert.acknowledged_at, alert.acknowledged_by, alert.note = None, "", ""
            alert.reraised_at, alert.reraises = now, alert.reraises + 1
            alert.save(update_fields=_RERAISED)
            queue_deliveries(alert, now)
    return len(found)
