"""What once kept jobs from their turn: overdue ones before them, end users with little, lots without end."""

from datetime import timedelta

import pytest

from dispatch.services import serve_queue as serving
from dispatch.services.serve_queue import serve_queue
from tests.dispatch.queue_yard import Yard
from tests.factories import NOW
from tests.invariants import assert_invariants

pytestmark = pytest.mark.django_db


def test_overdue_jobs_of_one_end_user_hold_up_no_other_and_nothing_behind_them() -> None:
    """After an outage more are overdue than one statement ends, and the scan goes on meanwhile."""
    yard = Yard()
    model, key = yard.model(1), yard.tenant()
    overdue = {"end_user": "ann", "dispatch_deadline_at": NOW - timedelta(seconds=1)}
    yard.jobs(400, key, model, **overdue)
    behind = yard.job(key, model, end_user="ann")
    of_another = yard.jobs(3, key, model, end_user="ben")
    assert serve_queue(yard.now).started == 1
    assert of_another[0].attempts.exists(), "nothing of Ann's that may begin is near enough to be read"
    yard.complete(of_another[0])
    assert yard.scan() == [behind], "those overdue have ended, and it is Ann's turn"
    assert_invariants()


def test_an_end_user_with_few_jobs_leaves_the_slots_of_the_same_scan_to_those_with_many() -> None:
    yard = Yard()
    model, key = yard.model(10), yard.tenant()
    yard.jobs(1, key, model, end_user="ann")
    yard.jobs(20, key, model, end_user="ben")
    assert len(yard.scan()) == 10
    assert_invariants()


def test_lots_beyond_those_of_one_scan_have_their_turn_in_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each job of a lot of its own, as anybody can make them by asking for other regions each time."""
    monkeypatch.setattr(serving, "LOTS_PER_SCAN", 2)
    yard = Yard()
    full, free, key, other = yard.model(1), yard.model(2), yard.tenant(), yard.tenant()
    first = yard.job(key, full)
    assert yard.scan(0.1) == [first]
    for number in range(4):
        yard.job(key, full, request={**first.request, "regions": ["cn-beijing", f"r{number}"]})
    early = yard.job(other, free)
    assert early in [job for _ in range(3) for job in yard.scan(0.1)]
    late = yard.job(other, free)
    yard.job(key, full, request={**first.request, "regions": ["a lot that nobody saw"]})
    assert late in [job for _ in range(3) for job in yard.scan(0.1)], "six lots, two a scan"
