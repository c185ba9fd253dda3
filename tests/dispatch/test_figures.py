"""Figures by the hour: counted by one statement, they equal what the rows themselves say."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext

from dispatch.capacity import Kind
from dispatch.hours import KEPT_FOR, WORK_KEPT_FOR, hour_of
from dispatch.models import Attempt, HourOfQueue, HourOfWork, Occupancy, PeakOfSlots
from dispatch.services.count_hours import count_hours
from dispatch.services.note_peaks import note_peaks
from tests.engine import Engine
from tests.factories import NOW, AttemptFactory, JobFactory, PublicModelFactory, SupplyFactory, succeeded_job
from tests.operations_world import waits


def test_hours_equal_the_attempts_that_the_engine_made(engine: Engine) -> None:
    jobs = [engine.job() for _ in range(4)]
    engine.finish(*jobs)
    engine.run(3600)
    late = engine.job()
    engine.finish(late)
    count_hours(engine.now + timedelta(minutes=6))
    picked = Counter(
        (hour_of(each.selection_round.created_at), each.supply_id, each.tier)
        for each in Attempt.objects.select_related("selection_round")
    )
    told = HourOfWork.objects.filter(picks__gt=0).values_list("hour", "supply_id", "tier", "picks")
    assert {(hour, supply, tier): n for hour, supply, tier, n in told} == picked
    assert len({hour for hour, *_ in picked}) == 2
    sums = HourOfWork.objects.aggregate(*map(Sum, ("ended", "delivered", "samples", "spent_micros")))
    attempts = Attempt.objects.filter(finished_at__isnull=False)
    assert sums == {
        "ended__sum": attempts.count(),
        "delivered__sum": attempts.filter(state="succeeded").count(),
        "samples__sum": attempts.filter(generated_at__isnull=False).count(),
        "spent_micros__sum": attempts.aggregate(at=Sum("cost_micros"))["at"],
    }


@pytest.mark.django_db
def test_content_and_cancelled_attempts_are_no_samples_and_what_delivered_nothing_is_wasted() -> None:
    model, supply = PublicModelFactory(), SupplyFactory()
    succeeded_job(supply=supply, public_model=model)
    for category, state in (("content", "failed"), ("supply", "failed"), ("", "cancelled")):
        AttemptFactory(
            job=JobFactory(public_model=model, state="failed"),
            supply=supply,
            state=state,
            error_category=category,
            request_started_at=NOW,
            cost_micros=50_000,
        )
    Attempt.objects.filter(state="succeeded").update(generated_at=NOW)
    count_hours(NOW + timedelta(minutes=10))
    hour = HourOfWork.objects.get()
    assert (hour.picks, hour.switches, hour.ended, hour.delivered) == (4, 0, 4, 1)
    assert (hour.samples, hour.successes) == (2, 1)
    assert (hour.spent_micros, hour.wasted_micros) == (350_000, 150_000)


@pytest.mark.django_db
def test_an_hour_is_counted_anew_while_it_may_change_and_old_ones_are_forgotten() -> None:
    model, supply = PublicModelFactory(), SupplyFactory()
    succeeded_job(supply=supply, public_model=model)
    now = NOW + timedelta(minutes=10)
    count_hours(now)
    succeeded_job(supply=supply, public_model=model)
    with CaptureQueriesContext(connection) as captured:
        count_hours(now + timedelta(minutes=1))
    assert len(captured) == 1, "it is too early to count again"
    assert HourOfWork.objects.get().picks == 1
    count_hours(now + timedelta(minutes=5))
    assert HourOfWork.objects.get().picks == 2
    count_hours(now + WORK_KEPT_FOR + timedelta(hours=1))
    assert not HourOfWork.objects.exists()


@pytest.mark.django_db
def test_the_most_of_each_hour_is_kept_of_slots_and_of_waiting_jobs() -> None:
    model, supply = PublicModelFactory(), SupplyFactory()
    row = Occupancy.objects.create(kind=Kind.SUPPLY, subject_id=supply.pk, confirmed=2, unknown=1)
    waits(model, "capacity_full", 3, NOW)
    note_peaks(NOW)
    for minutes, confirmed in ((1, 5), (2, 1), (61, 2)):
        Occupancy.objects.filter(pk=row.pk).update(confirmed=confirmed)
        note_peaks(NOW + timedelta(minutes=minutes))
    peaks = PeakOfSlots.objects.order_by("hour").values_list("kind", "subject_id", "taken", "seen_at")
    assert list(peaks) == [
        (Kind.SUPPLY, supply.pk, 6, NOW + timedelta(minutes=1)),
        (Kind.SUPPLY, supply.pk, 3, NOW + timedelta(minutes=61)),
    ]
    hours = HourOfQueue.objects.order_by("hour").values_list("waiting", "seen_at")
    assert list(hours) == [(3, NOW), (3, NOW + timedelta(minutes=61))]
    note_peaks(NOW + KEPT_FOR + timedelta(hours=2))
    assert PeakOfSlots.objects.count() == 1
