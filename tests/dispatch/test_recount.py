"""The recount: whatever a hand or a defect made of leases and counts becomes what the attempts say."""

from datetime import timedelta

import pytest

from catalog.models import AuditEntry
from dispatch import capacity
from dispatch.models import Attempt, CapacityLease, Occupancy
from dispatch.services.recount import recount
from health.models import Alert
from tests.factories import NOW, AttemptFactory, CapacityLeaseFactory

pytestmark = pytest.mark.django_db


def counts() -> dict[str, tuple[int, int]]:
    return {row.kind: (row.confirmed, row.unknown) for row in Occupancy.objects.all()}


def held_by(attempt: Attempt) -> str:
    lease = CapacityLease.objects.filter(attempt=attempt, released_at=None).first()
    return "nothing" if lease is None else lease.state


@pytest.mark.parametrize(
    ("state", "lease", "right"),
    [
        ("ready", None, "live"),
        ("running", None, "live"),
        ("submission_uncertain", None, "unknown"),
        ("running", "unknown", "live"),
        ("outcome_uncertain", "live", "unknown"),
        ("failed", "live", "nothing"),
        ("generated", "unknown", "nothing"),
        ("abandoned", "live", "unknown"),
    ],
)
def test_a_lease_that_does_not_fit_its_attempt_is_put_right_audited_and_told(
    state: str, lease: str | None, right: str
) -> None:
    attempt = AttemptFactory(state=state)
    if lease is not None:
        held = CapacityLeaseFactory(attempt=attempt, state=lease)
        counted = {"confirmed": int(lease == "live"), "unknown": int(lease == "unknown")}
        for kind, number in capacity.place_of(held).subjects():
            Occupancy.objects.create(kind=kind, subject_id=number, **counted)
    recount(NOW)
    assert held_by(attempt) == right
    taken = {"live": (1, 0), "unknown": (0, 1), "nothing": (0, 0)}[right]
    assert set(counts().values()) == {taken}
    subject = f"attempt:{attempt.public_id}"
    assert Alert.objects.get(subject=subject).severity == "critical"
    entry = AuditEntry.objects.get(subject=subject)
    assert (entry.actor, entry.action) == ("recount", "correct slots")
    assert recount(NOW + timedelta(minutes=1)) == []


def test_what_an_abandoned_attempt_gave_back_after_its_quarantine_stays_free() -> None:
    AttemptFactory(state="abandoned")
    assert recount(NOW) == []


def test_a_count_that_drifted_or_is_missing_is_counted_anew() -> None:
    lease = CapacityLeaseFactory(attempt=AttemptFactory(state="running"))
    Occupancy.objects.create(kind=capacity.Kind.CHANNEL, subject_id=lease.channel_id, confirmed=7, unknown=2)
    found = recount(NOW)
    assert found == [f"channel:{lease.channel.public_id}", f"supply:{lease.supply.public_id}"]
    assert counts() == {"b_channel": (1, 0), "c_supply": (1, 0)}
    entry = AuditEntry.objects.get(subject=found[0])
    assert (entry.before, entry.after) == (
        {"confirmed": 7, "unknown": 2},
        {"confirmed": 1, "unknown": 0},
    )
    assert Alert.objects.filter(code="lease_drift", resolved_at=None).count() == 2
    assert recount(NOW) == []
