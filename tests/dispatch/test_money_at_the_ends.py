"""Both books at every end a job can have: each amount once, each sum exact."""

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Sum

from billing.models import CostRuleVersion, CreditEntry, ProviderUsageEntry
from billing.pricing import parse_price, quote_micros
from catalog.models import Channel
from catalog.providers.types import JobStatus
from catalog.shape import shape_of
from dispatch import live_catalogue
from dispatch.lifecycle import FINAL_JOB_STATES, AttemptState
from dispatch.models import Attempt, Job, ProviderJob
from dispatch.services import record_poll
from health.models import Alert, ChannelHealth
from tests.engine import Engine

A = AttemptState
DEPOSIT = 1_000_000_000


def booked(job: Job) -> dict[str, int]:
    """Provider usage of the job's attempts by kind."""
    attempts = Attempt.objects.filter(job=job).values_list("public_id", flat=True)
    rows = ProviderUsageEntry.objects.filter(attempt__in=list(attempts)).order_by("kind")
    return {row["kind"]: row["sum"] for row in rows.values("kind").annotate(sum=Sum("amount_micros"))}


ENDINGS: tuple[dict[str, Any], ...] = (
    {},
    {"fail": "InternalServiceError"},
    {"fail": "OutputVideoSensitiveContentDetected"},
    {"without_output": True},
    {"error": "ServerOverloaded"},
    {"error": "InputTextSensitiveContentDetected"},
    {"answer": "drop_after_acceptance"},
    {"answer": "drop_before_response"},
    {"answer": "missing_id"},
    {"sequence": [[0, "queued"], [4, "expired"]]},
    {"sequence": [[0, "queued"], [4, "cancelled"]]},
    {"output_statuses": [504, 404]},
    {"usage": {"cost": "0.31", "currency": "USD"}},
    {"usage": {"cost": "2.5", "currency": "CNY"}},
    {"usage": {"cost": -1, "currency": "USD"}},
    {"run_s": -1},
    {"fail": "InternalServiceError", "usage": {"cost": "0.02", "currency": "USD"}},
)


def test_whatever_ends_come_in_whatever_order_every_sum_is_exact(engine: Engine) -> None:
    """Every ending once and some again, mixed by dice, with cancellations in between."""
    dice = random.Random(2)
    jobs = []
    endings = [*ENDINGS, *dice.choices(ENDINGS, k=3)]
    dice.shuffle(endings)
    for do in endings:
        engine.script(times=1, **do)
        jobs.append(engine.job(prompt=f"scene {len(jobs)}"))
        engine.step(dice.choice((1, 3, 6)))
        if dice.random() < 0.2:
            engine.api.post(f"/api/v1/jobs/{dice.choice(jobs).public_id}/cancel/")
    engine.run(8_000, step_s=400)
    assert {engine.reload(job).state for job in jobs} <= set(FINAL_JOB_STATES)
    charges = sum(job.charged_micros for job in jobs)
    assert engine.balance() == DEPOSIT - charges
    assert CreditEntry.objects.aggregate(sum=Sum("amount_micros"))["sum"] == engine.balance()
    for job in jobs:
        kinds = Counter(CreditEntry.objects.filter(job=job.public_id).values_list("kind", flat=True))
        assert kinds == ({"reserve": 1, "release": 1} | ({"charge": 1} if job.state == "succeeded" else {}))
        if job.actual_profile in ("", job.requested_profile) or job.state != "succeeded":
            assert job.charged_micros == (job.reserved_micros if job.state == "succeeded" else 0)
        assert 0 <= job.charged_micros <= job.reserved_micros, "a lesser result costs less"
        entries = sum(booked(job).values())
        assert entries == job.provider_cost_micros
        assert job.provider_cost_micros >= 0
    costs = Attempt.objects.filter(cost_micros__isnull=False).aggregate(sum=Sum("cost_micros"))["sum"]
    assert ProviderUsageEntry.objects.aggregate(sum=Sum("amount_micros"))["sum"] == costs


def test_a_failure_after_acceptance_gives_the_reserve_back_once_and_shows_what_the_supplier_bills(
    engine: Engine,
) -> None:
    """S19: failed, expired and cancelled by the provider; once with a bill for the failure."""
    price = engine.job().reserved_micros
    engine.run(20)
    before = engine.balance()
    ends = (
        {"fail": "InternalServiceError", "usage": {"cost": "0.25", "currency": "USD"}},
        {"sequence": [[0, "queued"], [3, "expired"]]},
        {"sequence": [[0, "queued"], [3, "cancelled"]]},
    )
    for do in ends:
        engine.script(**do)
        job = engine.job(routing_mode="strict_model")
        assert engine.balance() == before - price
        engine.finish(job)
        attempt = Attempt.objects.get(job=job)
        assert (job.state, job.charged_micros) == ("failed", 0)
        assert engine.balance() == before
        release = CreditEntry.objects.get(job=job.public_id, kind="release")
        assert release.details == {"attempt": attempt.public_id}
        record_poll.record_poll(attempt, JobStatus("failed", "failed"), engine.now)
        assert CreditEntry.objects.filter(job=job.public_id, kind="release").count() == 1
        assert ProviderJob.objects.get(attempt=attempt).raw_status in ("failed", "expired", "cancelled")
    assert ProviderJob.objects.filter(status="expired").count() == 1, "expired stays a word of its own"


REPORTS: tuple[tuple[dict[str, str], int, dict[str, str]], ...] = (
    ({}, 1_575_000, {"by": "rule"}),
    ({"cost": "11.25", "currency": "CNY"}, 1_575_000, {"by": "report", "reported": "11.25 CNY"}),
    ({"cost": "0", "currency": "USD"}, 0, {"by": "report", "reported": "0 USD"}),
    ({"cost": "4.725", "currency": "USD"}, 4_725_000, {"by": "report", "reported": "4.725 USD"}),
    ({"cost": "-3", "currency": "USD"}, 1_575_000, {"by": "rule", "reported": "-3 USD"}),
    ({"cost": "9", "currency": "XAU"}, 1_575_000, {"by": "rule", "reported": "9 XAU"}),
)


def test_a_cost_that_a_provider_reports_is_settled_once_and_doubted_aloud(engine: Engine) -> None:
    """Fault 39: none, another currency, nothing, three times as much, below nothing, one without a rate."""
    seen = []
    for usage, cost_micros, details in REPORTS:
        engine.script(usage=usage)
        job = engine.job(resolution="1080p")
        engine.finish(job)
        settled = ProviderUsageEntry.objects.filter(kind="settled").latest("id")
        assert (settled.amount_micros, settled.currency, settled.details) == (cost_micros, "USD", details)
        assert booked(job) == {"expected": 1_575_000, "reversal": -1_575_000, "settled": cost_micros}
        assert (job.provider_cost_micros, job.charged_micros) == (cost_micros, job.reserved_micros)
        alert = Alert.objects.filter(code="reconciliation_delta").first()
        seen.append((alert.count, alert.details["why"]) if alert else None)
    assert seen[:3] == [None, None, (1, "differs")]
    assert [each[1] for each in seen[3:] if each] == ["differs", "negative", "no rate for its currency"]
    assert Alert.objects.filter(code="reconciliation_delta").count() == 1, "one condition of one supply"


def test_an_end_found_after_giving_up_makes_the_loss_the_true_one_and_charges_nobody(engine: Engine) -> None:
    """S12: accepted and lost from sight; and never seen accepted. What it cost is found out later."""
    engine.script(run_s=9_000, usage={"cost": "0.40", "currency": "USD"})
    accepted = engine.job()
    engine.drain()
    engine.run(3_600, step_s=600)
    engine.script("list", answer="not_json")
    engine.script(answer="drop_after_acceptance", run_s=9_000)
    lost = engine.job(prompt="another")
    engine.run(4_000, step_s=200)
    assert engine.attempts(accepted) == engine.attempts(lost) == [A.ABANDONED]
    worst = {job.pk: Attempt.objects.get(job=job).quote_micros for job in (accepted, lost)}
    assert {engine.reload(job).provider_cost_micros for job in (accepted, lost)} == set(worst.values())
    engine.simulator.script({"rules": [{"when": {"call": "list"}, "do": {}}]})
    engine.run(12_000, step_s=600)
    for job, cost in ((accepted, 400_000), (lost, worst[lost.pk])):
        attempt = Attempt.objects.get(job=job)
        assert (attempt.state, attempt.cost_micros, attempt.next_look_at) == (A.ABANDONED, cost, None)
        assert (engine.reload(job).state, job.charged_micros, job.provider_cost_micros) == ("failed", 0, cost)
        losses = ProviderUsageEntry.objects.filter(attempt=attempt.public_id, platform_loss=True)
        assert sum(entry.amount_micros for entry in losses) == cost
    assert booked(accepted)["correction"] == 400_000 - worst[accepted.pk]
    assert engine.balance() == DEPOSIT
    assert not engine.api.get(f"/api/v1/jobs/{accepted.public_id}/").json()["outputs"], "never adopted late"


def test_moderation_that_comes_later_ends_the_job_at_once_as_content_and_harms_no_channel(
    engine: Engine,
) -> None:
    """S13, fault 27."""
    engine.script(fail="OutputVideoSensitiveContentDetected")
    job = engine.job()
    engine.finish(job, within_s=60)
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (body["state"], body["error"]["code"]) == ("failed", "content_refused")
    assert engine.attempts(job) == [A.FAILED]
    assert Attempt.objects.get(job=job).error_category == "content"
    assert (job.charged_micros, job.provider_cost_micros) == (0, 0)
    assert not ChannelHealth.objects.exclude(state="healthy").exists()
    polls = ProviderJob.objects.get(attempt__job=job).polls
    engine.run(600, step_s=60)
    assert ProviderJob.objects.get(attempt__job=job).polls == polls, "no endless polling"


@pytest.mark.parametrize(
    ("document", "seconds", "micros"),
    [
        ({"mode": "per_request", "per_request": "2.5"}, 15, 2_500_000),
        ({"mode": "per_second", "per_second": "2.5"}, 15, 37_500_000),
        ({"mode": "per_second", "per_second": "0.0001"}, 3, 300),
        ({"mode": "per_second", "per_second": "3.33333333"}, 1, 3_333_333),
        ({"mode": "per_second", "per_second": "0.00000050"}, 1, 1),
        ({"mode": "per_second", "per_second": "0.00000049"}, 1, 0),
    ],
)
def test_a_unit_is_part_of_its_price_and_rounding_comes_once(
    document: dict[str, str], seconds: int, micros: int
) -> None:
    """S22 and S23."""
    price = parse_price({"currency": "USD", **document}, "video")
    shape = shape_of("video", {"mode": "text_to_video", "duration_s": seconds, "resolution": "720p"})
    assert quote_micros(price, shape) == micros


def test_a_supply_without_a_price_is_never_taken_for_free(engine: Engine) -> None:
    """S23: the job goes to somebody whose price is known, or nowhere."""
    engine.now += timedelta(seconds=30)
    CostRuleVersion.objects.filter(rule__supply__channel__slug="ark-beijing").update(effective_to=engine.now)
    live_catalogue._kept.clear()
    job = engine.job()
    engine.finish(job)
    assert {attempt.channel.slug for attempt in Attempt.objects.filter(job=job)} == {"ark-singapore"}
    CostRuleVersion.objects.filter(effective_to=None).update(effective_to=engine.now)
    live_catalogue._kept.clear()
    unpriced = engine.job(prompt="another")
    engine.finish(unpriced)
    assert (unpriced.state, unpriced.error_code, engine.attempts(unpriced)) == ("failed", "no_supply", [])
    assert Channel.objects.filter(state="enabled").count() == 2
