"""Whether a recurring task would find anything to do: one condition each, answered by an index.

The pulse asks all of them in one statement a second. A condition may say yes too often, never too seldom."""

from datetime import datetime

from django.db.models import Exists, Q
from django.db.models.expressions import Combinable

from dispatch.lifecycle import AT_PROVIDER_STATES, AttemptState
from dispatch.models import Attempt, CapacityLease, Job, Line
from health.circuit import State
from health.models import AlertDelivery, ChannelHealth, SupplyHealth

Due = Q | Combinable
A = AttemptState
RECONCILED_STATES = (A.SUBMISSION_UNCERTAIN, A.ABANDONED, A.GENERATED, A.FETCHING)


def scan(now: datetime) -> Due:
    """Whatever waits in the fair queue is looked at each second; other jobs have a time of their own."""
    return Exists(Job.objects.filter(next_action_at__lte=now)) | Exists(Line.objects.filter(is_active=True))


def is_scan_due(now: datetime) -> bool:
    """For a bell that rang as a sign of life: a scan that finds nothing asks a dozen times."""
    return (
        Line.objects.filter(is_active=True).exists() or Job.objects.filter(next_action_at__lte=now).exists()
    )


def reconcile(now: datetime) -> Due:
    return (
        Exists(CapacityLease.objects.filter(released_at=None, expires_at__lte=now))
        | Exists(Attempt.objects.filter(state__in=RECONCILED_STATES, next_look_at__lte=now))
        | Exists(
            # Such an attempt always has a next look, and only those that have one are in an index.
            Attempt.objects.filter(
                state=A.OUTCOME_UNCERTAIN, next_look_at__isnull=False, uncertain_deadline_at__lte=now
            )
        )
    )


def poll(now: datetime) -> Due:
    return Exists(Attempt.objects.filter(state__in=AT_PROVIDER_STATES, next_look_at__lte=now))


def begin_recoveries(now: datetime) -> Due:
    cooled = {"state": State.CIRCUIT_OPEN, "cooldown_until__lte": now}
    return Exists(ChannelHealth.objects.filter(**cooled)) | Exists(SupplyHealth.objects.filter(**cooled))


def deliver_alerts(now: datetime) -> Due:
    return Exists(AlertDelivery.objects.filter(state=AlertDelivery.State.PENDING, next_try_at__lte=now))
