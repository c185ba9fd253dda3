"""A lease lives as long as its worker sends, and no longer."""

from datetime import timedelta
from time import monotonic

import pytest
from django.db import OperationalError, connection

from dispatch import heartbeat
from dispatch.capacity import LEASE_TTL
from dispatch.models import CapacityLease
from tests.factories import NOW, AttemptFactory, CapacityLeaseFactory


@pytest.mark.django_db(transaction=True)
def test_a_database_that_was_away_for_a_beat_ends_no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = CapacityLeaseFactory(
        attempt=AttemptFactory(state="submitting"), expires_at=NOW + timedelta(seconds=5)
    )
    beats = []

    def clock() -> object:
        beats.append(connection)
        if len(beats) == 1:
            raise OperationalError("the connection is lost")
        return NOW

    monkeypatch.setattr(heartbeat, "EVERY_S", 0.02)
    with heartbeat.kept_leases([lease.attempt], clock):  # type: ignore[arg-type]
        began_s = monotonic()
        while len(beats) < 3 and monotonic() - began_s < 60:
            pass
    assert CapacityLease.objects.get(pk=lease.pk).expires_at == NOW + LEASE_TTL


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_while_its_attempt_is_sent_but_never_once_it_ran_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives, ran_out = (
        CapacityLeaseFactory(
            attempt=AttemptFactory(state="submitting"), expires_at=NOW + timedelta(seconds=s)
        )
        for s in (5, 0)
    )
    beats = []

    def clock() -> object:
        beats.append(connection)
        return NOW

    monkeypatch.setattr(heartbeat, "EVERY_S", 0.02)
    for lease in (lives, ran_out):
        with heartbeat.kept_leases([lease.attempt], clock):  # type: ignore[arg-type]
            seen = len(beats)
            while len(beats) < seen + 2:
                pass
    assert CapacityLease.objects.get(pk=lives.pk).expires_at == NOW + LEASE_TTL
    assert CapacityLease.objects.get(pk=ran_out.pk).expires_at == NOW
