"""An image while its customer waits: what is answered, what is kept, and that nothing is sent twice."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django_q.models import OrmQ

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.models import Channel, Supply, SupplyBinding
from catalog.revision import bump_revision
from dispatch.models import Attempt, CapacityLease, Job, Occupancy, SelectionRound
from dispatch.services import answer_image, dispatch_scan
from dispatch.services import generate_image as generating
from dispatch.services.submit import submit
from dispatch.transport import access_to, transport_for_sending
from health.models import Alert, SupplyHealth
from tests.dispatch.test_api import problem
from tests.engine import IMAGE, VIDEO, Engine

IMAGES = "/api/v1/images/"


def create(engine: Engine, key: str | None = None, **changes: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return engine.api.post(IMAGES, {**IMAGE, **changes}, format="json", headers=headers)


def nothing_is_left(engine: Engine) -> None:
    assert not Job.objects.exists()
    assert not SelectionRound.objects.exists()
    assert not CapacityLease.objects.exists()
    assert not CreditEntry.objects.exclude(kind="deposit").exists()
    engine.run(5)
    assert engine.posts() == []


def test_the_finished_job_is_the_answer_with_all_the_evidence_of_an_asynchronous_one(engine: Engine) -> None:
    rung = OrmQ.objects.count()  # by the publications of the catalogue
    response = create(engine, key="k")
    assert response.status_code == 200, response.content
    body = response.json()
    assert (body["state"], body["cost"]["charged"]) == ("succeeded", "0.05")
    output = body["outputs"][0]
    assert b"".join(engine.api.get(output["url"]).streaming_content)[:3] == b"\xff\xd8\xff"
    job = Job.objects.get()
    attempt = job.attempts.get()
    assert (attempt.state, attempt.selection_round.outcome) == ("succeeded", "chosen")
    assert attempt.leases.get().released_at is not None
    assert attempt.evidence_at is not None
    assert set(ProviderUsageEntry.objects.values_list("kind", flat=True)) == {
        "expected",
        "reversal",
        "settled",
    }
    assert response["Location"] == f"/api/v1/jobs/{job.public_id}/"
    assert engine.api.get(response["Location"]).json() == body
    assert OrmQ.objects.count() == rung, "no worker was asked for anything"
    engine.run(120)
    again = create(engine, key="k")
    assert (again.status_code, again.content) == (200, response.content)
    assert problem(create(engine, key="k", size="1280x720")) == (409, "idempotency_conflict")
    assert len(engine.posts()) == 1


def test_a_key_belongs_to_its_call(engine: Engine) -> None:
    image = create(engine, key="k").json()
    job = engine.submit(key="k").json()
    assert image["id"] != job["id"]
    found = engine.api.get("/api/v1/jobs/?idempotency_key=k").json()["results"]
    assert {each["id"] for each in found} == {image["id"], job["id"]}


def test_a_body_that_is_no_image_is_refused_and_binds_nothing(engine: Engine) -> None:
    for changes in (
        {"duration_s": 5},
        {"size": "9x9"},
        {"model": VIDEO["model"]},
        {"service_class": "batch"},
    ):
        assert problem(create(engine, key="k", **changes)) == (400, "invalid_request"), changes
    assert problem(create(engine, key="k", model="nothing")) == (404, "model_not_found")
    nothing_is_left(engine)
    assert create(engine, key="k").status_code == 200


def test_a_full_supply_is_told_at_once_and_leaves_nothing(engine: Engine) -> None:
    for supply in Supply.objects.filter(modality="image"):
        Occupancy.objects.create(
            kind=Occupancy.Kind.SUPPLY, subject_id=supply.pk, confirmed=supply.concurrency
        )
    response = create(engine, key="k")
    assert problem(response) == (429, "no_capacity")
    assert int(response["Retry-After"]) >= 1
    nothing_is_left(engine)
    Occupancy.objects.update(confirmed=0)
    assert create(engine, key="k").status_code == 200, "429 binds no key"


def test_a_customer_at_its_own_limit_is_told_so(engine: Engine) -> None:
    engine.customer.max_in_flight = 0
    engine.customer.save()
    assert problem(create(engine)) == (429, "no_capacity")
    nothing_is_left(engine)


def test_a_model_out_of_service_is_told_at_once_and_operators_too(engine: Engine) -> None:
    for supply in Supply.objects.filter(modality="image"):
        SupplyHealth.objects.create(
            supply=supply, state="circuit_open", cooldown_until=engine.now + timedelta(seconds=600)
        )
    response = create(engine, key="k")
    assert problem(response) == (503, "nothing_available")
    assert int(response["Retry-After"]) >= 1
    assert not Job.objects.exists()
    assert not CreditEntry.objects.exclude(kind="deposit").exists()
    assert Alert.objects.filter(code="exact_unavailable", subject="model:seedream-4.0").exists()


def test_a_request_that_nobody_could_ever_take_is_a_finished_job(engine: Engine) -> None:
    SupplyBinding.objects.filter(supply__modality="image").update(tier="fallback")
    bump_revision()
    response = create(engine, routing_mode="strict_model", key="k")
    assert (response.status_code, response.json()["state"]) == (200, "failed")
    assert response.json()["error"]["code"] == "no_supply"
    job = Job.objects.get(public_id=response.json()["id"])
    assert job.rounds.get().outcome == "no_candidate"
    assert create(engine, routing_mode="strict_model", key="k").content == response.content


def test_a_customer_without_credit_is_told_before_a_slot_is_looked_at(engine: Engine) -> None:
    poor = create_customer("initech", engine.now, group="studio", deposit_micros=10_000)
    client = engine.client(issue_key(poor)[1].secret)
    assert problem(client.post(IMAGES, IMAGE, format="json")) == (402, "insufficient_credit")
    nothing_is_left(engine)


def test_one_transparent_switch_after_a_failure_of_the_supply(engine: Engine) -> None:
    engine.script("submit", times=1, error="ServerOverloaded")
    response = create(engine)
    assert (response.status_code, response.json()["state"]) == (200, "succeeded")
    job = Job.objects.get()
    assert engine.attempts(job) == ["failed", "succeeded"]
    assert job.attempts.values("supply").distinct().count() == 2
    assert [post["outcome"] for post in engine.posts()][-1] != engine.posts()[0]["outcome"]
    assert response.json()["cost"]["charged"] == "0.05"


def test_two_failures_are_a_finished_job_that_costs_nothing(engine: Engine) -> None:
    engine.script("submit", error="ServerOverloaded")
    response = create(engine)
    body = response.json()
    assert (response.status_code, body["state"], body["cost"]["charged"]) == (200, "failed", "0.00")
    assert len(engine.posts()) == 2
    engine.run(60)
    assert len(engine.posts()) == 2


def test_a_second_attempt_that_finds_no_slot_ends_with_the_first_ones_error(engine: Engine) -> None:
    engine.script("submit", error="ServerOverloaded")
    busy = Supply.objects.get(slug="singapore-seedream-4-0")
    Occupancy.objects.create(kind=Occupancy.Kind.SUPPLY, subject_id=busy.pk, confirmed=busy.concurrency)
    response = create(engine)
    assert (response.status_code, response.json()["state"]) == (200, "failed")
    assert response.json()["error"]["code"] == "generation_failed"
    Occupancy.objects.update(confirmed=0)
    engine.run(60)
    assert len(engine.posts()) == 1, "nobody else executes what a request gave up"


@pytest.mark.parametrize("error", ["InputTextSensitiveContentDetected", "InvalidParameter"])
def test_content_and_request_errors_are_not_tried_again(engine: Engine, error: str) -> None:
    engine.script("submit", error=error)
    response = create(engine)
    assert (response.status_code, response.json()["state"]) == (200, "failed")
    assert response.json()["error"]["code"] in ("content_refused", "invalid_input")
    assert len(engine.posts()) == 1
    assert not SupplyHealth.objects.exclude(state="healthy").exists()


@pytest.mark.parametrize("answer", ["drop_after_acceptance", "truncated", "not_json"])
def test_an_unknown_outcome_is_told_and_never_sent_again(engine: Engine, answer: str) -> None:
    engine.script("submit", answer=answer)
    response = create(engine, key="k")
    assert problem(response) == (502, "submission_unknown")
    job = Job.objects.get()
    assert response.json()["job"] == job.public_id
    assert (job.state, engine.attempts(job)) == ("running", ["submission_uncertain"])
    assert Attempt.objects.get().leases.get().state == "unknown"
    assert create(engine, key="k").content == response.content
    shown = engine.api.get("/api/v1/jobs/?idempotency_key=k").json()["results"][0]
    assert (shown["state"], shown["delayed"]) == ("running", True)
    engine.run(2000, step_s=60)
    assert (engine.reload(job).state, job.error_code) == ("failed", "submission_unknown")
    assert len(engine.posts()) == 1
    assert create(engine, key="k").content == response.content, "the first answer, also after the end"


def test_an_output_that_comes_late_is_told_and_delivered_all_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script("submit", output="missing")
    response = create(engine, key="k")
    assert (response.status_code, response.json()["state"]) == (202, "fetching_output")
    job = Job.objects.get()
    assert engine.now - job.created_at >= timedelta(seconds=120), "the policy's total timeout"
    assert engine.api.get(response["Location"]).status_code == 200
    assert create(engine, key="k").content == response.content


def test_an_output_that_hiccups_is_fetched_by_whoever_is_next_while_the_customer_waits(
    engine: Engine,
) -> None:
    engine.script("submit", output_statuses=[504, 504])
    response = create(engine)
    assert (response.status_code, response.json()["state"]) == (200, "succeeded")
    assert len(engine.posts()) == 1


def test_two_at_once_with_one_key_are_one_job_and_one_answer(engine: Engine) -> None:
    def post(_: int) -> tuple[int, bytes]:
        try:
            response = create(engine, key="k")
            return response.status_code, bytes(response.content)
        finally:
            connection.close()

    engine.script("submit", latency_s=0.5)
    with ThreadPoolExecutor(8) as clients:
        answers = set(clients.map(post, range(8)))
    assert len(answers) == 1
    assert answers.pop()[0] == 200
    assert Job.objects.count() == len(engine.posts()) == 1


def test_a_repeat_is_not_refused_for_the_slot_that_its_own_first_request_took_meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 48, at the customer's limit."""
    Customer.objects.update(max_in_flight=1)
    engine.script(answer="drop_after_acceptance")  # the first stays in progress
    drafted, first = generating._drafted, []

    def behind_the_first(*given: Any) -> Job:
        monkeypatch.setattr(generating, "_drafted", drafted)
        first.append(create(engine, key="order-1"))
        return drafted(*given)

    monkeypatch.setattr(generating, "_drafted", behind_the_first)
    repeat = create(engine, key="order-1")
    assert (repeat.status_code, repeat.content) == (502, first[0].content)
    assert Job.objects.count() == 1


def test_a_request_that_died_between_two_attempts_is_ended_at_its_deadline_by_the_scan(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script("submit", error="ServerOverloaded")
    monkeypatch.setattr(generating, "_place_again", _die)
    with pytest.raises(KeyboardInterrupt):
        create(engine, key="k")
    job = Job.objects.get()
    assert (job.state, job.next_action_at) == ("dispatching", job.dispatch_deadline_at)
    engine.run(119, step_s=17)
    assert len(engine.posts()) == 1, "no scan executes it"
    engine.run(20)
    assert (engine.reload(job).state, job.error_code) == ("failed", "generation_failed")
    monkeypatch.undo()


def test_a_request_that_died_before_it_sent_is_sent_by_a_worker_or_expires(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generating, "submit", _die)
    with pytest.raises(KeyboardInterrupt):
        create(engine, key="k")
    job = Job.objects.get()
    assert engine.attempts(job) == ["ready"]
    engine.run(130)
    assert engine.reload(job).state == "succeeded", "found by its key, like a dead worker's"
    assert len(engine.posts()) == 1


def test_a_request_that_died_with_the_picture_made_is_delivered_by_a_worker(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_image, "fetch_output", _die)
    with pytest.raises(KeyboardInterrupt):
        create(engine, key="k")
    job = Job.objects.get()
    assert engine.attempts(job) == ["generated"]
    engine.finish(job)
    assert job.state == "succeeded"
    assert len(engine.posts()) == 1


def test_the_total_timeout_bounds_the_call_and_not_only_the_waiting(engine: Engine) -> None:
    channel = Channel.objects.get(slug="ark-beijing")
    short, long = (transport_for_sending(access_to(channel), within_s=s).limits for s in (3, 500))
    assert (short.deadline_s, short.read_timeout_s, short.connect_timeout_s) == (3, 3, 3)
    assert (long.deadline_s, long.read_timeout_s) == (settings.PROVIDER_DEADLINE_S,) * 2
    engine.script("submit", latency_s=60)
    job = engine.job(IMAGE)
    dispatch_scan.scan(lambda: engine.now)
    began = monotonic()
    submit([job.attempts.get().pk], lambda: engine.now, until=engine.now + timedelta(seconds=1))
    assert monotonic() - began < 30
    assert engine.attempts(job) == ["submission_uncertain"], "what was cut off may have been made"


def test_auto_picks_the_image_model(engine: Engine) -> None:
    body = {"prompt": "a lighthouse", "routing_mode": "auto"}
    response = engine.api.post(IMAGES, body, format="json")
    assert (response.status_code, response.json()["model"]) == (200, IMAGE["model"])
    assert Job.objects.get().model_choice["why"] == "only_offer"  # type: ignore[index]
    assert json.loads(Job.objects.get().first_answer)["state"] == "succeeded"


def _die(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
