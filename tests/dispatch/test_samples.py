"""Five statements count samples of success; each counts the same attempts, whatever an attempt came to."""

from datetime import timedelta
from itertools import product

import pytest

from catalog.models import PublicModel, Supply
from dispatch.lifecycle import FINAL_ATTEMPT_STATES, AttemptState
from dispatch.models import Attempt, HourOfWork, PublicationWatch
from dispatch.queries.publication_watches import actual_of
from dispatch.queries.success import success_of
from dispatch.recent_rates import supply_figures
from dispatch.selection_facts import read_statistics
from dispatch.services.count_hours import count_hours
from tests.factories import NOW, AttemptFactory, JobFactory, PublicModelFactory, SupplyFactory

pytestmark = pytest.mark.django_db
CATEGORIES = ("", "content", "request", "supply", "capacity", "unknown")
ENDED_AT = NOW + timedelta(minutes=3)


def is_success(attempt: Attempt) -> bool:
    return attempt.generated_at is not None


def is_sample(attempt: Attempt) -> bool:
    told_of_the_supply = attempt.error_category in ("supply", "capacity", "unknown")
    ended_badly = attempt.state in (AttemptState.FAILED, AttemptState.ABANDONED)
    was_sent = attempt.request_started_at is not None
    return is_success(attempt) or (ended_badly and told_of_the_supply and was_sent)


def every_end(model: PublicModel, supply: Supply) -> list[Attempt]:
    """One attempt for each final state, category, and whether it was sent and generated."""
    ends = product(sorted(FINAL_ATTEMPT_STATES), CATEGORIES, (None, NOW), (None, NOW + timedelta(minutes=2)))
    return [
        AttemptFactory(
            job=JobFactory(public_model=model),
            supply=supply,
            state=state,
            error_category=category,
            request_started_at=sent_at,
            generated_at=generated_at,
            finished_at=ENDED_AT,
        )
        for state, category, sent_at, generated_at in ends
    ]


def test_the_router_the_alerts_the_pages_and_the_figures_count_the_same_samples() -> None:
    model, supply, now = PublicModelFactory(), SupplyFactory(), ENDED_AT + timedelta(minutes=5)
    attempts = every_end(model, supply)
    expected = (sum(map(is_sample, attempts)), sum(map(is_success, attempts)))
    assert 0 < expected[1] < expected[0] < len(attempts)

    routed = read_statistics((supply.pk,), now)[supply.pk]
    assert (routed.samples, routed.successes) == expected

    errors = supply_figures([supply.pk], now)[supply.pk].now.errors
    assert (errors.whole, errors.whole - errors.part) == expected

    day = success_of([supply.pk], now)[supply.pk]
    assert (day.samples, sum(bucket.successes for bucket in day.buckets)) == expected

    watch = PublicationWatch(public_model=model, published_at=NOW, until_at=NOW + timedelta(hours=1))
    actual = actual_of(watch, now)
    assert (actual.samples, actual.successes) == expected

    count_hours(now)
    hour = HourOfWork.objects.get()
    assert (hour.samples, hour.successes) == expected
