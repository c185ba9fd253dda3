"""Routing as customers and operators meet it: through the API, the scan, the books and the alerts.

Whatever a test does, every round that it stored must come out again, byte for byte."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from billing.models import CreditEntry, ProviderUsageEntry
from billing.services.publish_price import publish_price
from catalog.audit import Actor
from catalog.facts import ModelFacts
from catalog.models import Channel, PublicModel, Supply
from catalog.services.save_policy import save_policy
from dispatch.catalogue.repository import saved_model_facts
from dispatch.models import Attempt, Job, SelectionRound
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.routing.explain import explain
from dispatch.routing.rendering import rendered
from dispatch.routing.replay import replay
from dispatch.services.publish import Published, publish
from dispatch.services.save_model import save_model
from health.circuit import Subject
from health.models import Alert, Severity
from health.services import switch
from tests.engine import IMAGE, VIDEO, Engine
from tests.factories import ChannelHealthFactory

ALICE = Actor("alice", "console")
EXACT, FALLBACK, DEGRADED = "beijing-seedance-2-0", "singapore-seedance-2-0", "beijing-seedance-2-0-fast"


def urls(kind: str, count: int) -> list[str]:
    return [f"https://media.example.com/{kind}-{number}" for number in range(count)]


FULL_933: dict[str, Any] = {
    **VIDEO,
    "reference_images": urls("image", 9),
    "reference_videos": urls("video", 2),
    "reference_audios": urls("audio", 1),
}


@pytest.fixture(autouse=True)
def _every_round_replays(engine: Engine) -> Iterator[None]:
    yield
    rounds = list(SelectionRound.objects.all())
    assert rounds, "a test of routing that stored no round"
    documents = recorded_documents(*(row.snapshot for row in rounds))
    for row in rounds:
        assert replay(row.snapshot, documents) == [], row


def exact_and_fallback_fail(engine: Engine) -> None:
    """One is switched off by an operator, the other's channel has failed."""
    switch.disable(Subject.SUPPLY, Supply.objects.get(slug=EXACT).pk, ALICE, "maintenance", engine.now)
    singapore = Channel.objects.get(slug="ark-singapore")
    ChannelHealthFactory(
        channel=singapore, state="circuit_open", cooldown_until=engine.now + timedelta(hours=1)
    )


def answer(engine: Engine, job: Job) -> dict[str, Any]:
    body: dict[str, Any] = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    return body


def rounds_of(job: Job) -> list[dict[str, Any]]:
    return list(SelectionRound.objects.filter(job=job).order_by("number").values_list("snapshot", flat=True))


def open_alerts() -> set[tuple[str, str]]:
    return set(Alert.objects.filter(resolved_at=None).values_list("code", "subject"))


def republished(engine: Engine, slug: str, **changes: Any) -> PublicModel:
    result = publish(saved(engine, slug, **changes), actor=ALICE, now=engine.now)
    assert isinstance(result, Published), [gate for gate in result.gates if not gate.passed]
    return result.model


def saved(engine: Engine, slug: str, **changes: Any) -> PublicModel:
    model = PublicModel.objects.select_related("policy").get(slug=slug)
    facts: ModelFacts = replace(saved_model_facts(model), **changes)
    return save_model(facts, expected_revision=model.revision, actor=ALICE, now=engine.now)


def test_a_933_request_without_933_supplies_is_delivered_as_900_and_says_so_everywhere(
    engine: Engine,
) -> None:
    exact_and_fallback_fail(engine)
    job = engine.job(FULL_933)
    engine.finish(job)
    said = {
        "degraded": True,
        "requested_profile": "933",
        "actual_profile": "900",
        "dropped_inputs": ["reference_videos", "reference_audios"],
    }
    body = answer(engine, job)
    assert body["state"] == "succeeded"
    assert {name: body[name] for name in said} == said
    assert rounds_of(job)[0]["decision"]["degradation"] == said

    attempt = Attempt.objects.get(job=job)
    assert (attempt.supply.slug, attempt.tier) == (DEGRADED, "degraded")
    before, after = job.request, attempt.sent_request
    assert [len(before[name]) for name in ("reference_images", "reference_videos", "reference_audios")] == [
        9,
        2,
        1,
    ]
    assert after == {**before, "reference_videos": [], "reference_audios": []}
    posted = json.dumps(engine.simulator.world.log()["posts"]) + json.dumps(attempt.compile_plan)
    assert "video-0" not in posted
    assert "audio-0" not in posted

    entries = ProviderUsageEntry.objects.filter(attempt=attempt.public_id, kind__in=("expected", "settled"))
    assert [entry.details for entry in entries] == [said, {**said, "by": "rule"}]
    charge = CreditEntry.objects.get(job=job.public_id, kind="charge")
    assert charge.amount_micros == -1_100_000, "5 s at 900's 0.22, not at 933's 0.30"
    assert charge.details == {**said, "attempt": attempt.public_id}
    assert job.reserved_micros == 1_500_000
    model = "model:seedance-2.0-933"
    assert {("exact_unavailable", model), ("degradation_active", model)} <= open_alerts()

    switch.enable(
        Subject.SUPPLY, Supply.objects.get(slug=EXACT).pk, ALICE, "done", engine.now, as_healthy=True
    )
    later = engine.job(FULL_933)
    engine.finish(later)
    assert answer(engine, later)["degraded"] is False
    whole = CreditEntry.objects.get(job=later.public_id, kind="charge")
    assert whole.details == {"attempt": later.attempts.get().public_id}
    assert not {("exact_unavailable", model), ("degradation_active", model)} & open_alerts()


def test_a_lesser_result_is_charged_by_the_inputs_that_were_sent(engine: Engine) -> None:
    price = PublicModel.objects.get(slug=VIDEO["model"]).price
    of_two_videos = {"when": {"videos": 2}, "factor": "1.2"}
    lesser = {**price["900"], "multipliers": [of_two_videos]}
    republished(engine, VIDEO["model"], price={**price, "900": lesser})
    exact_and_fallback_fail(engine)
    job = engine.job(FULL_933)
    engine.finish(job)
    assert job.actual_profile == "900"
    assert CreditEntry.objects.get(job=job.public_id, kind="charge").amount_micros == -1_100_000


def test_a_model_without_a_price_for_what_its_bindings_deliver_is_not_published(engine: Engine) -> None:
    engine.finish(engine.job(FULL_933))
    price = PublicModel.objects.get(slug=VIDEO["model"]).price
    model = saved(engine, VIDEO["model"], price={"933": price["933"]})
    result = publish(model, actor=ALICE, now=engine.now)
    assert not isinstance(result, Published)
    (shut,) = (gate for gate in result.gates if not gate.passed)
    assert (shut.number, shut.measured) == (
        3,
        "no sale price for profile 900, which a binding delivers",
    )


def test_a_lesser_result_without_a_price_in_its_customers_currency_is_delivered_for_nothing_and_told(
    engine: Engine,
) -> None:
    price = PublicModel.objects.get(slug=VIDEO["model"]).price
    republished(engine, VIDEO["model"], price={**price, "900": {**price["900"], "currency": "CNY"}})
    exact_and_fallback_fail(engine)
    before, job = engine.balance(), engine.job(FULL_933)
    engine.finish(job)
    assert (job.state, job.actual_profile, job.charged_micros) == ("succeeded", "900", 0)
    assert engine.balance() == before
    told = Alert.objects.get(code="sale_price_missing")
    assert (told.subject, told.details["job"]) == (f"model:{VIDEO['model']}", job.public_id)


def test_a_strict_request_on_the_same_system_waits_and_then_ends_honestly(engine: Engine) -> None:
    exact_and_fallback_fail(engine)
    balance = engine.customer.balance_micros
    job = engine.job(FULL_933, degradation="strict", max_queue_s=60)
    engine.drain()
    body = answer(engine, job)
    assert (body["state"], body["queue"]["reason"], body["degraded"]) == ("queued", "no_candidate", False)
    verdicts = rounds_of(job)[0]["decision"]["candidates"]
    assert {key: verdict["reason"] for key, verdict in verdicts.items()} == {
        EXACT: "supply_health_disabled",
        FALLBACK: "channel_circuit_open",
        DEGRADED: "degradation_not_allowed",
    }
    engine.run(66, step_s=33)
    body = answer(engine, job)
    assert (body["state"], body["error"]["code"]) == ("expired", "dispatch_deadline_exceeded")
    assert engine.attempts(job) == []
    engine.customer.refresh_from_db()
    assert engine.customer.balance_micros == balance
    assert len(rounds_of(job)) == 1, "a look that finds the same again is not stored again"


def dear_fallback(engine: Engine, per_second: str) -> None:
    """The only supply that is left asks so much."""
    engine.now += timedelta(seconds=60)
    price = {"mode": "per_second", "currency": "USD", "per_second": per_second}
    publish_price(Supply.objects.get(slug=FALLBACK), price, actor=ALICE, now=engine.now)
    switch.disable(Subject.SUPPLY, Supply.objects.get(slug=EXACT).pk, ALICE, "maintenance", engine.now)


def test_a_dear_supply_is_kept_out_by_the_multiple_and_let_in_by_the_override_with_a_critical_alert(
    engine: Engine,
) -> None:
    republished(engine, "seedance-2.0-933", degradation="strict")
    dear_fallback(engine, "0.50")
    waiting = engine.job()
    engine.drain()
    assert engine.attempts(waiting) == []
    reason = rounds_of(waiting)[0]["decision"]["candidates"][FALLBACK]
    assert (reason["reason"], reason["quote"]) == ("over_fallback_limit", 2_500_000)

    switch.enable(
        Subject.SUPPLY, Supply.objects.get(slug=EXACT).pk, ALICE, "for the gates", engine.now, as_healthy=True
    )
    republished(engine, "seedance-2.0-933", emergency_override=True)
    switch.disable(Subject.SUPPLY, Supply.objects.get(slug=EXACT).pk, ALICE, "maintenance", engine.now)
    engine.finish(waiting)
    attempt = Attempt.objects.get(job=waiting)
    assert (attempt.supply.slug, attempt.quote_micros) == (FALLBACK, 2_500_000)
    assert "emergency_override" in rounds_of(waiting)[-1]["decision"]["flags"]
    alert = Alert.objects.get(code="emergency_override", resolved_at=None)
    assert (alert.severity, alert.subject) == (Severity.CRITICAL, "model:seedance-2.0-933")


def test_the_override_never_lifts_the_absolute_ceiling(engine: Engine) -> None:
    republished(engine, "seedance-2.0-933", degradation="strict", emergency_override=True)
    dear_fallback(engine, "6.01")
    job = engine.job()
    engine.drain()
    assert engine.attempts(job) == []
    verdict = rounds_of(job)[0]["decision"]["candidates"][FALLBACK]
    assert verdict["quote"] == 30_050_000, "over the policy's 30.00"
    assert verdict["reason"] == "over_fallback_limit", "the first walk's result is returned whole"
    assert not Alert.objects.filter(code="emergency_override").exists()


def test_nothing_of_an_image_job_speaks_of_real_persons(engine: Engine) -> None:
    job = engine.job(IMAGE)
    engine.finish(job)
    snapshot = rounds_of(job)[0]
    models = engine.api.get("/api/v1/models/").json()["results"]
    said = [
        json.dumps(snapshot),
        rendered(explain(snapshot)),
        engine.api.get(f"/api/v1/jobs/{job.public_id}/").content.decode(),
        json.dumps(next(it for it in models if it["id"] == "seedream-4.0")),
        json.dumps(Attempt.objects.get(job=job).compile_plan),
        json.dumps(job.request),
    ]
    for text in said:
        assert "person" not in text.lower(), text


def test_the_second_round_of_a_job_leaves_out_what_the_first_has_tried(engine: Engine) -> None:
    overloaded = {"when": {"call": "submit"}, "times": 1, "do": {"error": "ServerOverloaded"}}
    engine.simulator.script({"rules": [overloaded]})
    job = engine.job()
    engine.finish(job)
    first, second = rounds_of(job)
    tried = first["decision"]["chosen"]
    assert second["decision"]["candidates"][tried]["reason"] == "already_tried"
    assert second["decision"]["chosen"] != tried
    assert (second["job"]["tried"], second["job"]["attempt"]) == ([tried], 2)
    numbers = (
        Attempt.objects.filter(job=job).order_by("number").values_list("selection_round__number", flat=True)
    )
    assert list(numbers) == [1, 2]


def test_rounds_of_every_kind_are_stored(engine: Engine) -> None:
    """Full layers, real persons, degraded deliveries, refusals by capability, images and a shadow order."""
    weighted = save_policy(
        "weighted", {"order": "cost_first", "shadow_order": "weighted"}, actor=ALICE, now=engine.now
    )
    republished(engine, "seedance-2.0-933", policy=weighted.slug)
    jobs = [
        *(engine.job() for _ in range(7)),
        engine.job(FULL_933),
        engine.job(real_person=True),
        engine.job(VIDEO, routing_mode="strict_model"),
        engine.job({**IMAGE, "size": "2048x2048"}),
        engine.job({**VIDEO, "model": "seedance-1.0-pro"}, duration_s=10, real_person=True),
        engine.job(VIDEO, max_cost="1.50"),
    ]
    engine.drain()
    snapshots = [snapshot for job in jobs for snapshot in rounds_of(job)]
    assert {snapshot["decision"]["outcome"] for snapshot in snapshots} == {"chosen", "waiting_capacity"}
    reasons = {
        verdict["reason"] for snapshot in snapshots for verdict in snapshot["decision"]["candidates"].values()
    }
    assert {"capacity_full", "layer_not_reached", "real_person_denied", None} <= reasons
    shadows = [
        snapshot["evidence"]["shadow"]["name"] for snapshot in snapshots if "shadow" in snapshot["evidence"]
    ]
    assert "weighted" in shadows


def test_queued_jobs_wait_for_a_model_that_is_being_changed_and_follow_its_new_priorities(
    engine: Engine,
) -> None:
    other = {**VIDEO, "model": "seedance-1.0-pro"}
    before = engine.job(other)
    engine.drain()
    assert Attempt.objects.get(job=before).supply.slug == "beijing-seedance-1-0-pro"
    queued = engine.job(other)
    facts = saved_model_facts(PublicModel.objects.get(slug="seedance-1.0-pro"))
    bindings = tuple(
        replace(binding, priority=900) if binding.supply.startswith("singapore") else binding
        for binding in facts.bindings
    )
    model = saved(engine, "seedance-1.0-pro", bindings=bindings)
    engine.drain()
    assert engine.attempts(queued) == []
    assert answer(engine, queued)["queue"]["reason"] == "model_not_published"
    refused = engine.submit(other)
    assert (refused.status_code, refused.json()["code"]) == (409, "model_not_published")

    assert isinstance(publish(model, actor=ALICE, now=engine.now), Published)
    engine.finish(queued)
    assert Attempt.objects.get(job=queued).supply.slug == "singapore-seedance-1-0-pro"
    assert Attempt.objects.get(job=queued).model_revision == model.revision
    assert Attempt.objects.get(job=before).model_revision == model.revision - 1
