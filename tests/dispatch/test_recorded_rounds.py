"""The nightly audit of stored rounds, and the report on shadow orders."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.audit import Actor
from catalog.models import PublicModel
from catalog.services.save_policy import save_policy
from dispatch import tasks
from dispatch.catalogue.repository import saved_model_facts
from dispatch.management.commands import shadow_report
from dispatch.models import SelectionRound
from dispatch.queries.shadow_rounds import shadow_rounds
from dispatch.routing.shadow_report import report
from dispatch.services.audit_replays import BUCKETS, audit_replays
from dispatch.services.dispatch_scan import scan
from dispatch.services.publish import Published, publish
from dispatch.services.save_model import save_model
from health.models import Alert
from tests.engine import VIDEO, Engine

ALICE = Actor("alice", "console")


def recorded(
    engine: Engine, durations_s: Iterable[int] = range(4, 4 + BUCKETS), body: dict[str, Any] = VIDEO
) -> list[SelectionRound]:
    """As many rounds as there are buckets, so that each night has one; waiting for the same is one round."""
    for duration_s in durations_s:
        engine.job(body, duration_s=duration_s)
    scan(lambda: engine.now)
    return list(SelectionRound.objects.order_by("pk"))


def rewrite(row: SelectionRound) -> None:
    """As no code of ours could: evidence is append-only."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE dispatch_selectionround SET snapshot = %s WHERE id = %s",
            [json.dumps(row.snapshot), row.pk],
        )
        cursor.execute("SET session_replication_role = origin")


def test_in_as_many_nights_as_there_are_buckets_each_round_is_looked_at_once(engine: Engine) -> None:
    rounds = recorded(engine)
    nights = [audit_replays(engine.now + timedelta(days=day)) for day in range(BUCKETS)]
    assert [audit.replayed for audit in nights] == [1] * len(rounds)
    assert all(audit.differing == {} for audit in nights)
    assert audit_replays(engine.now) == nights[0], "the same night looks at the same rounds"
    assert not Alert.objects.filter(code="replay_difference").exists()


def test_a_round_that_comes_out_otherwise_is_a_critical_alert_until_it_agrees_again(engine: Engine) -> None:
    rounds = recorded(engine)
    wrong = rounds[3]
    baseline = wrong.snapshot["decision"]["baseline"]
    wrong.snapshot["decision"]["baseline"] = 1
    rewrite(wrong)
    audits = [audit_replays(engine.now + timedelta(days=day)) for day in range(BUCKETS)]
    assert any(audit.differing for audit in audits)
    alert = Alert.objects.get(code="replay_difference", resolved_at=None)
    assert alert.severity == "critical"
    assert list(alert.details["rounds"]) == [wrong.public_id]
    assert alert.details["rounds"][wrong.public_id].startswith("decision.baseline: recorded 1")

    wrong.snapshot["decision"]["baseline"] = baseline
    rewrite(wrong)
    audit_replays(engine.now)
    alert.refresh_from_db()
    assert alert.resolved_at is not None


def test_a_round_of_an_earlier_form_is_skipped_and_one_whose_price_is_gone_is_a_difference(
    engine: Engine,
) -> None:
    first, second, *_ = recorded(engine)
    first.snapshot["schema"] = 0
    second.snapshot["supplies"]["beijing-seedance-2-0"]["price"] = ["prv_gone", "0" * 32]
    for row in (first, second):
        rewrite(row)
    audits = [audit_replays(engine.now + timedelta(days=day)) for day in range(BUCKETS)]
    assert sum(audit.skipped for audit in audits) == 1
    found = {name: why for audit in audits for name, why in audit.differing.items()}
    assert found == {second.public_id: "ReplayError: prv_gone: its document was not given"}


def test_the_pulse_rings_for_the_audit_once_a_day(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    nights: list[datetime] = []
    monkeypatch.setattr(tasks.auditing, "audit_replays", nights.append)
    engine.step()
    engine.step(60)
    assert len(nights) == 1
    engine.step(86_400)
    assert len(nights) == 2


def test_the_report_tells_agreement_and_what_became_of_the_real_choice(engine: Engine) -> None:
    """video-stable has the shadow order cost_first, and one exact supply: they agree."""
    job = engine.job()
    engine.finish(job)
    with CaptureQueriesContext(connection) as captured:
        (row,) = report(shadow_rounds(engine.now - timedelta(days=1)))
    assert len(captured) == 1
    assert (row.model, row.shadow_order, row.rounds, row.agreed) == ("seedance-2.0-933", "cost_first", 1, 1)
    (stored,) = shadow_rounds(engine.now - timedelta(days=1))
    assert (stored.result.state, stored.result.cost_micros) == ("succeeded", 700_000)
    assert stored.result.seconds is not None
    assert stored.result.seconds > 0


def test_the_command_prints_a_line_for_each_model_and_day(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_report, "now", lambda: engine.now)
    assert told() == "No round of the last 7 days has a shadow order.\n"
    recorded(engine, (5, 5))
    assert told() == "seedance-2.0-933  2026-11-30  shadow cost_first: 2 of 2 agree (100%)\n"
    engine.now += timedelta(days=3)
    assert told("--days", "2") == "No round of the last 2 days has a shadow order.\n"


def test_where_the_orders_differ_the_command_says_what_was_expected_why_and_what_came_of_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, Singapore goes first; the shadow would take Beijing, which is cheaper."""
    monkeypatch.setattr(shadow_report, "now", lambda: engine.now)
    parameters = {"order": "manual_priority", "shadow_order": "cost_first"}
    save_policy("by-hand", parameters, actor=ALICE, now=engine.now)
    model = PublicModel.objects.select_related("policy").get(slug="seedance-1.0-pro")
    priorities = {"singapore-seedance-1-0-pro": 900, "beijing-seedance-1-0-pro": 100}
    facts = saved_model_facts(model)
    bindings = tuple(replace(it, priority=priorities[it.supply]) for it in facts.bindings)
    facts = replace(facts, policy="by-hand", bindings=bindings)
    saved = save_model(facts, expected_revision=model.revision, actor=ALICE, now=engine.now)
    assert isinstance(publish(saved, actor=ALICE, now=engine.now), Published)
    recorded(engine, (5, 5), {**VIDEO, "model": model.slug})
    assert told().splitlines() == [
        "seedance-1.0-pro  2026-11-30  shadow cost_first: 0 of 2 agree (0%)",
        "   real    expected cost 0.611112 USD, p95 unknown",
        "   shadow  expected cost 0.575556 USD, p95 unknown",
        "   result  ready 2; took unknown, cost unknown on average",
        "   lost by priority 2",
        "   2 × singapore-seedance-1-0-pro → beijing-seedance-1-0-pro",
    ]


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("shadow_report", *arguments, stdout=out)
    return out.getvalue()
