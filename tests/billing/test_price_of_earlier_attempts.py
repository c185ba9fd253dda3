"""A price that begins later changes nothing that was selected before it (M2)."""

from datetime import timedelta

from billing.models import ProviderUsageEntry
from billing.services.schedule_price import schedule_price
from catalog.audit import Actor
from dispatch.models import Attempt, Job
from tests.engine import Engine


def booked(job: Job) -> list[tuple[str, int]]:
    attempts = list(job.attempts.values_list("public_id", flat=True))
    lines = ProviderUsageEntry.objects.filter(attempt__in=attempts).order_by("id")
    return list(lines.values_list("kind", "amount_micros"))


def test_m2_costs_of_earlier_attempts_stay_when_a_price_is_scheduled_and_when_it_starts(
    engine: Engine,
) -> None:
    settled = engine.job()
    engine.finish(settled)
    before = booked(settled)
    attempt = Attempt.objects.select_related("supply", "cost_rule_version").get(job=settled)
    under_way = engine.job()
    engine.step(2)
    selected = Attempt.objects.get(job=under_way)
    start = engine.now + timedelta(seconds=1)
    currency = attempt.cost_rule_version.currency
    dearer = {"mode": "per_second", "currency": currency, "per_second": "9.90"}
    for supply in {attempt.supply, selected.supply}:
        schedule_price(supply, dearer, start, actor=Actor("zhao.q", "console"), now=engine.now)
    assert booked(settled) == before
    engine.finish(under_way)
    assert engine.now > start
    assert booked(settled) == before
    selected.refresh_from_db()
    assert selected.cost_rule_version_id == attempt.cost_rule_version_id
    assert selected.cost_micros == selected.quote_micros == attempt.cost_micros
    later = engine.job()
    engine.finish(later)
    assert Attempt.objects.get(job=later).quote_micros > attempt.quote_micros
