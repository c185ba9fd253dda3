"""When a bell rings: within a second for whatever is due, and seldom for nothing."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django_q.models import OrmQ

from dispatch import pulse, tasks
from dispatch.lifecycle import AttemptState
from dispatch.models import Bell, Line, Lot, TenantQueue
from health.models import AlertDelivery
from tests.factories import (
    NOW,
    AlertFactory,
    AttemptFactory,
    CapacityLeaseFactory,
    ChannelHealthFactory,
    JobFactory,
    SupplyHealthFactory,
)

pytestmark = pytest.mark.django_db
A = AttemptState
LATER = NOW + timedelta(hours=1)
SEEN = pulse.Seen(NOW, NOW, is_due=False)


def after(seconds: float, seen: pulse.Seen, name: str = "scan") -> bool:
    return pulse.is_to_ring(pulse.BELLS[name], seen, NOW + timedelta(seconds=seconds))


def test_a_bell_rings_each_second_while_something_is_due_and_else_as_a_sign_of_life() -> None:
    assert after(1, pulse.Seen(NOW, NOW, is_due=True))
    assert not after(0.5, pulse.Seen(NOW, NOW, is_due=True))
    assert not after(8, SEEN)
    assert after(pulse.SIGN_OF_LIFE_EVERY_S, SEEN)
    assert not after(pulse.LOOK_ALL_THE_SAME_EVERY_S / 2, SEEN, "reconcile")
    assert after(pulse.LOOK_ALL_THE_SAME_EVERY_S, SEEN, "reconcile")


def test_a_bell_rings_again_only_once_it_was_answered_or_is_taken_for_lost() -> None:
    for waiting in (pulse.Seen(NOW, None, True), pulse.Seen(NOW, NOW - timedelta(seconds=1), True)):
        assert not after(29, waiting)
        assert after(pulse.RING_AGAIN_AFTER_S, waiting)
        assert not after(59, waiting, "housekeeping")


def attempt_to_look_at(state: AttemptState, **values: Any) -> Callable[[], object]:
    return lambda: AttemptFactory(state=state, next_look_at=NOW, job__next_action_at=None, **values)


def waiting_message() -> object:
    return AlertDelivery.objects.create(
        alert=AlertFactory(), means="email", target="ops@example.com", next_try_at=NOW, created_at=NOW
    )


DUE: list[tuple[str, Callable[[], object]]] = [
    ("scan", lambda: JobFactory(next_action_at=NOW)),
    ("reconcile", lambda: CapacityLeaseFactory(attempt__job__next_action_at=None, expires_at=NOW)),
    *(
        ("reconcile", attempt_to_look_at(state))
        for state in (A.SUBMISSION_UNCERTAIN, A.ABANDONED, A.GENERATED, A.FETCHING)
    ),
    *(
        ("poll", attempt_to_look_at(state))
        for state in (A.ACCEPTED, A.PROVIDER_QUEUED, A.RUNNING, A.CANCEL_REQUESTED, A.OUTCOME_UNCERTAIN)
    ),
    (
        "reconcile",
        lambda: AttemptFactory(
            state=A.OUTCOME_UNCERTAIN,
            next_look_at=LATER,
            uncertain_deadline_at=NOW,
            job__next_action_at=None,
        ),
    ),
    ("begin_recoveries", lambda: ChannelHealthFactory(state="circuit_open", cooldown_until=NOW)),
    ("begin_recoveries", lambda: SupplyHealthFactory(state="circuit_open", cooldown_until=NOW)),
    ("deliver_alerts", waiting_message),
]


@pytest.fixture
def quiet() -> None:
    """Every bell was rung and answered just before NOW."""
    long_ago = NOW - timedelta(seconds=5)
    pulse.beat(long_ago)
    Bell.objects.update(answered_at=long_ago)
    OrmQ.objects.all().delete()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("name", "make"), DUE, ids=[f"{name}-{n}" for n, (name, _) in enumerate(DUE)])
def test_what_is_due_is_rung_at_the_next_beat_and_nothing_else(name: str, make: Callable[[], object]) -> None:
    make()
    assert pulse.beat(NOW - timedelta(seconds=1)) == []
    assert pulse.beat(NOW) == [name]
    assert OrmQ.objects.get().task["func"] == pulse.BELLS[name].task


@pytest.mark.usefixtures("quiet")
def test_the_scan_is_rung_each_second_while_a_job_stands_in_the_fair_queue() -> None:
    job = JobFactory(next_action_at=None)
    lot = Lot.objects.create(key="k", public_model=job.public_model, asks={}, created_at=NOW)
    tenant = TenantQueue.objects.create(customer=job.customer, service_class="standard", waiting=1)
    Line.objects.create(lot=lot, tenant=tenant, waiting=1, is_active=True, watermark_at=NOW)
    assert pulse.beat(NOW) == ["scan"]
    pulse.answer("scan", NOW)
    assert pulse.beat(NOW + timedelta(seconds=1)) == ["scan"]


@pytest.mark.usefixtures("quiet")
def test_a_beat_with_nothing_due_is_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert pulse.beat(NOW) == []


def test_every_condition_is_answered_by_an_index() -> None:
    sql, parameters = pulse._question()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {sql}", parameters)
        plan = [line for (line,) in cursor.fetchall()]
    assert [line.split()[3] for line in plan if "Seq Scan" in line] == ["dispatch_bell"]


def test_a_scan_that_is_rung_as_a_sign_of_life_is_an_answer_and_two_questions(
    django_assert_max_num_queries: Any,
) -> None:
    tasks.scan()
    with django_assert_max_num_queries(4):  # and, if need be, the worker's own sign of life
        tasks.scan()
