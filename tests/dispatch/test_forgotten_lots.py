"""Lots in which nobody has waited for a day are forgotten, and nobody who comes at that moment is lost."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from billing.models import ApiKey
from catalog.models import PublicModel
from dispatch import queue
from dispatch.models import Job, Line, Lot
from dispatch.services.forget_lots import FORGOTTEN_AFTER
from dispatch.services.keep_house import keep_house
from tests.dispatch.queue_yard import Yard
from tests.dispatch.test_fair_queue_concurrency import at_once
from tests.factories import JobFactory
from tests.invariants import assert_invariants

A_DAY_LATER = FORGOTTEN_AFTER.total_seconds() + 60


def drafted(yard: Yard, key: ApiKey, model: PublicModel) -> Job:
    """With its place in the queue, and not stored yet."""
    job = JobFactory.build(
        api_key=key,
        customer=key.customer,
        public_model=model,
        created_at=yard.now,
        dispatch_deadline_at=yard.now + timedelta(minutes=20),
        next_action_at=None,
    )
    queue.take_place(job, yard.now)
    return job


@pytest.mark.django_db
def test_a_lot_is_forgotten_after_a_day_in_which_nobody_waited_and_made_again_by_the_next_job() -> None:
    yard = Yard()
    model, full, key = yard.model(2), yard.model(1), yard.tenant()
    yard.job(key, model)
    yard.jobs(2, key, full, dispatch_deadline_at=yard.now + timedelta(days=9))
    assert len(yard.scan()) == 2
    keep_house(yard.now + timedelta(seconds=A_DAY_LATER / 2))
    assert Lot.objects.count() == 2, "half a day is no day"
    yard.now += timedelta(seconds=A_DAY_LATER)
    keep_house(yard.now)
    assert Lot.objects.get().public_model == full, "somebody waits there"
    assert Line.objects.get().waiting == 1
    again = yard.job(key, model, dispatch_deadline_at=yard.now + timedelta(days=9))
    assert [job.pk for job in yard.scan()] == [again.pk]


@pytest.mark.django_db
def test_a_line_that_was_forgotten_between_its_finding_and_its_use_is_made_again() -> None:
    yard = Yard()
    model, key = yard.model(2), yard.tenant()
    yard.job(key, model)
    yard.scan()
    yard.now += timedelta(seconds=A_DAY_LATER)
    job = drafted(yard, key, model)
    assert queue.forget_lots(yard.now, 10) == 1
    job.save()
    assert queue.enter(job) == 0
    assert Line.objects.get().waiting == 1
    assert [began.pk for began in yard.scan()] == [job.pk]


@pytest.mark.django_db(transaction=True)
def test_a_lot_that_another_transaction_uses_just_now_is_not_forgotten() -> None:
    yard = Yard()
    model, key, newcomer = yard.model(2), yard.tenant(), yard.tenant()
    yard.job(key, model)
    yard.scan()
    yard.now += timedelta(seconds=A_DAY_LATER)
    with transaction.atomic():
        job = drafted(yard, newcomer, model)
        assert at_once(lambda now: queue.forget_lots(now, 10), [yard.now]) == [0]
        job.save()
        queue.enter(job)
    connection.close()
    assert [began.pk for began in yard.scan()] == [job.pk]
    assert_invariants()
