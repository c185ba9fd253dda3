"""What of the last quarter of an hour is out of its own last day, from rows to alerts and back."""

from datetime import timedelta
from typing import Any

import pytest

from catalog.models import PublicModel, Supply
from dispatch.baselines import Costs, Share, Spans
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt
from dispatch.recent_rates import WINDOW, model_figures, supply_figures
from dispatch.services.watch_rates import watch_rates
from health.models import Alert
from tests.factories import (
    NOW,
    AttemptFactory,
    DispatchPolicyFactory,
    JobFactory,
    PublicModelFactory,
    SupplyFactory,
)

pytestmark = pytest.mark.django_db
A = AttemptState
YESTERDAY = timedelta(hours=6)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def supply() -> Supply:
    return SupplyFactory(slug="one", channel__slug="first")


@pytest.fixture
def model() -> PublicModel:
    return PublicModelFactory(slug="video-1")


def attempts(
    supply: Supply, count: int = 1, ago: timedelta = MINUTE, number: int = 1, **values: Any
) -> list[Attempt]:
    """Ended `ago` before NOW, after two minutes of work; each of a job of its own."""
    ended = NOW - ago
    times: dict[str, Any] = {
        "created_at": ended - 2 * MINUTE,
        "request_started_at": ended - 2 * MINUTE,
        "finished_at": ended,
    }
    given = {"supply": supply, "number": number, **times, **values}
    job = {"job__public_model": PublicModel.objects.first() or PublicModelFactory()}
    return AttemptFactory.create_batch(count, **job, **given)


def generated(
    supply: Supply, count: int = 1, ago: timedelta = MINUTE, seconds: float = 60, **more: Any
) -> None:
    at = NOW - ago
    times: dict[str, Any] = {
        "accepted_at": at - timedelta(seconds=seconds),
        "generated_at": at,
        "evidence_at": at,
    }
    attempts(supply, count, ago, state=A.SUCCEEDED, **times, **more)


def failed(supply: Supply, count: int = 1, ago: timedelta = MINUTE, category: str = "supply") -> None:
    attempts(supply, count, ago, state=A.FAILED, error_category=category, evidence_at=NOW - ago)


def firing() -> dict[str, dict[str, Any]]:
    return {f"{alert.code} {alert.subject}": alert.details for alert in Alert.objects.unresolved()}


def test_a_submission_became_unknown_when_its_evidence_came_before_its_acceptance_or_its_end(
    supply: Supply,
) -> None:
    at = NOW - MINUTE
    unknown: dict[str, Any] = {"evidence_at": at - MINUTE}
    attempts(supply, state=A.SUBMISSION_UNCERTAIN, finished_at=None, **unknown)
    attempts(supply, state=A.ABANDONED, error_category="unknown", **unknown)
    attempts(supply, state=A.RUNNING, finished_at=None, accepted_at=at, **unknown)  # found
    attempts(supply, state=A.FAILED, error_category="capacity", **unknown)  # proved absent
    generated(supply)
    failed(supply)
    attempts(supply, state=A.ABANDONED, accepted_at=at - MINUTE)  # lost after its acceptance
    attempts(supply, state=A.READY, request_started_at=None, finished_at=None)
    assert supply_figures([supply.pk], NOW)[supply.pk].now.unknown == Share(4, 7)


def test_samples_refusals_and_spans_are_told_apart_and_the_windows_do_not_overlap(supply: Supply) -> None:
    generated(supply, 3, seconds=30)
    failed(supply, 2)
    failed(supply, 4, category="content")
    failed(supply, 5, category="request")
    failed(supply, 1, ago=WINDOW)  # just too old for now
    generated(supply, 2, ago=YESTERDAY, seconds=90)
    generated(supply, 1, ago=timedelta(days=1))  # just too old for anything
    recent = supply_figures([supply.pk], NOW)[supply.pk]
    assert (recent.now.errors, recent.now.refusals) == (Share(2, 5), Share(4, 7))
    assert (recent.now.spans, recent.before.spans) == (Spans(30, 3), Spans(90, 2))
    assert recent.before.errors == Share(1, 3)


def test_errors_of_a_channels_supplies_together_raise_one_alert_until_they_are_rare_again(
    supply: Supply,
) -> None:
    other, healthy = SupplyFactory(channel=supply.channel), SupplyFactory(channel__slug="second")
    generated(supply, 20, ago=YESTERDAY)
    failed(supply, 1, ago=YESTERDAY)
    for one in (supply, other):
        failed(one, 6)
        generated(one, 6)
    generated(healthy, 12)
    watch_rates(NOW)
    assert firing() == {
        "provider_errors_and_timeouts channel:first": {
            "measured": "50.0 %",
            "samples": 24,
            "baseline": "4.8 %",
            "limit": "10.0 %",
        }
    }
    watch_rates(NOW + MINUTE)
    assert Alert.objects.get().count == 2
    watch_rates(NOW + WINDOW)
    assert firing() == {}
    assert "within the limit" in Alert.objects.get().resolved_why


def test_a_shift_of_refusals_and_slow_work_are_told_of_channel_and_supply(supply: Supply) -> None:
    generated(supply, 25, ago=YESTERDAY, seconds=60)
    generated(supply, 20, seconds=100)
    failed(supply, 12, category="content")
    watch_rates(NOW)
    told = firing()
    assert set(told) == {"safety_rate_shift channel:first", "latency_over_baseline supply:one"}
    assert told["latency_over_baseline supply:one"] == {
        "measured": "100.0 s",
        "samples": 20,
        "baseline": "60.0 s",
        "limit": "90.0 s",
    }


def test_thresholds_are_the_installations(supply: Supply, settings: Any) -> None:
    failed(supply, 10)
    watch_rates(NOW)
    assert firing() == {}
    settings.ALERT_SAMPLES, settings.ALERT_ERRORS_PERCENT = 10, 60
    watch_rates(NOW)
    assert set(firing()) == {"provider_errors_and_timeouts channel:first"}
    settings.ALERT_ERRORS_PERCENT = 90
    watch_rates(NOW)
    assert firing() == {}


def test_second_attempts_and_the_cost_of_a_success_are_told_of_the_model(settings: Any) -> None:
    settings.ALERT_SAMPLES = 6
    policy = DispatchPolicyFactory(parameters={"max_cost_per_success_micros": 500_000})
    model = PublicModelFactory(slug="video-1", policy=policy)
    supply = SupplyFactory()
    for number in range(6):
        job = JobFactory(
            public_model=model,
            state=JobState.FAILED,
            started_at=NOW - 3 * MINUTE,
            finished_at=NOW - MINUTE,
            provider_cost_micros=200_000,
        )
        AttemptFactory(job=job, supply=supply, state=A.FAILED)
        if number < 4:
            AttemptFactory(job=job, supply=supply, state=A.FAILED, number=2)
    JobFactory(public_model=model, state=JobState.EXPIRED, finished_at=NOW - MINUTE)  # never tried: no sample
    figures = model_figures([model.pk], NOW)[model.pk].now
    assert (figures.switched, figures.costs) == (Share(4, 6), Costs(6, 0, 1_200_000))
    watch_rates(NOW)
    told = firing()
    assert set(told) == {"failover_rate_high model:video-1", "cost_per_success_over model:video-1"}
    assert told["cost_per_success_over model:video-1"] == {
        "measured": "1.20 USD",
        "samples": 6,
        "limit": "0.50 USD",
    }
