"""Why jobs wait, told from the rows that the real engine left."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from random import Random
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import Q

from billing.models import Customer
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.models import Channel, PublicModel, Supply
from catalog.revision import bump_revision
from dispatch.lifecycle import JobState
from dispatch.models import Attempt, Job
from dispatch.queries.waiting import waiting_now
from dispatch.queries.waiting_job import JobWaiting, clocks_of, customer_queue, waiting_of
from dispatch.services.cancel import cancel
from dispatch.services.dispatch_scan import set_aside
from dispatch.waiting import Code, Step
from health.models import ChannelHealth, RefusalRecord
from tests.engine import IMAGE, VIDEO, Engine
from tests.factories import NOW

SLOTS = 5  # of the one exact supply of VIDEO


def why(engine: Engine, job: Job) -> JobWaiting:
    waiting = waiting_of(engine.reload(job), engine.now)
    assert waiting is not None
    return waiting


def answer(engine: Engine, job: Job) -> dict[str, Any]:
    body: dict[str, Any] = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    return body


def change(rows: Any, **values: object) -> None:
    rows.update(**values)
    bump_revision()


def fill(engine: Engine) -> list[Job]:
    jobs = [engine.job(VIDEO) for _ in range(SLOTS)]
    engine.step()
    assert all(engine.attempts(job) for job in jobs)
    return jobs


def assert_no_name_of_a_supplier(body: dict[str, Any]) -> None:
    text = json.dumps(body)
    names = [
        *Channel.objects.values_list("slug", flat=True),
        *Channel.objects.values_list("provider", flat=True),
        *Supply.objects.values_list("slug", flat=True),
        *Supply.objects.values_list("provider_model", flat=True),
    ]
    assert not [name for name in names if f'"{name}' in text or f" {name}" in text]
    assert "att_" not in text


def test_a_job_that_just_came_waits_for_the_next_scan_and_says_its_deadline(engine: Engine) -> None:
    engine.step()
    job = engine.job(VIDEO)
    waiting = why(engine, job)
    assert (waiting.code, waiting.place, waiting.round) == (Code.NOT_LOOKED_AT, 1, "")
    told = answer(engine, job)["queue"]
    assert told == {
        "place": 1,
        "reason": "queued",
        "message": "Waiting to be dispatched.",
        "not_before": None,
        "deadline": "2026-11-30T12:20:01Z",
    }


def test_a_job_without_a_slot_names_who_holds_them_to_operators_and_nobody_to_its_customer(
    engine: Engine,
) -> None:
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}}
    engine.simulator.script({"rules": [rule]})
    running = fill(engine)
    job = engine.job(VIDEO)
    engine.step()
    waiting = why(engine, job)
    assert (waiting.code, waiting.step) == (Code.CAPACITY_FULL, Step.HEALTH_AND_CAPACITY)
    assert {slot.job for slot in waiting.taken} == {each.public_id for each in running}
    (unknown,) = waiting.unknown
    uncertain = Attempt.objects.get(state="submission_uncertain")
    assert (unknown.attempt, unknown.unknown_until) == (uncertain.public_id, uncertain.uncertain_deadline_at)
    reasons = {each.supply: each.reason for each in waiting.blocked}
    assert reasons["beijing-seedance-2-0"] == "capacity_full"
    assert clocks_of(job, engine.now).queued_s == 1
    assert waiting.round
    body = answer(engine, job)
    assert (body["queue"]["reason"], body["queue"]["place"]) == ("waiting_capacity", 1)
    assert_no_name_of_a_supplier(body)
    engine.finish(job)
    assert "queue" not in answer(engine, job)


def test_a_jobs_place_moves_when_those_before_it_start(engine: Engine) -> None:
    fill(engine)
    users = ["anna", "anna", "anna", "bo"]
    jobs = [engine.job(VIDEO, end_user=user) for user in users]
    other_model = engine.job(IMAGE)
    engine.step()
    first = places(engine, jobs)
    assert sorted(first) == [1, 2, 3, 4]
    assert first[0] < first[1] < first[2], "of one end user the earlier goes first"
    assert first[3] <= 2, "end users are served in turn"
    assert engine.attempts(other_model), "another model's queue is another one"
    while (left := [job for job in jobs if not engine.attempts(job)]) == jobs:
        engine.step()
    gone = len(jobs) - len(left)
    assert gone
    assert sorted(places(engine, left)) == list(range(1, len(left) + 1))
    assert {job for job, place in zip(jobs, first, strict=True) if place <= gone}.isdisjoint(left)


def places(engine: Engine, jobs: list[Job]) -> list[int]:
    told = [why(engine, job).place for job in jobs]
    return [place for place in told if place is not None]


def test_a_job_whose_content_was_refused_waits_by_itself_until_it_may_be_asked_again(engine: Engine) -> None:
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"error": "InputTextSensitiveContentDetected"}}
    engine.simulator.script({"rules": [rule]})
    engine.finish(engine.job(IMAGE))
    job = engine.job(IMAGE, size="2048x2048")
    engine.step()
    refused_at = RefusalRecord.objects.get().refused_at
    assert refused_at is not None
    waiting = why(engine, job)
    assert (waiting.code, waiting.step) == (Code.CONTENT_COOLDOWN, Step.CAPABILITY)
    assert (waiting.until, waiting.place) == (refused_at + timedelta(minutes=15), None)
    body = answer(engine, job)
    assert body["queue"]["reason"] == "content_refused"
    assert body["queue"]["not_before"] == waiting.until.isoformat().replace("+00:00", "Z")
    assert_no_name_of_a_supplier(body)


def test_a_job_that_a_provider_asked_to_wait_for_says_until_when(engine: Engine) -> None:
    rule = {"when": {"call": "submit"}, "do": {"error": "ServerOverloaded", "retry_after": "100"}}
    engine.simulator.script({"rules": [rule]})
    engine.finish(engine.job(IMAGE))
    job = engine.job(IMAGE)
    engine.step()
    waiting = why(engine, job)
    assert waiting.code is Code.PROVIDER_PAUSE
    assert waiting.until == min(each.ends_at for each in waiting.blocked if each.ends_at)
    assert engine.now < waiting.until <= engine.now + timedelta(seconds=100)
    assert answer(engine, job)["queue"]["reason"] == "waiting_capacity"


def test_a_job_behind_open_circuits_says_when_the_first_is_probed(engine: Engine) -> None:
    accounts = {name: {"state": "revoked"} for name in ("beijing-account-key", "singapore-account-key")}
    engine.simulator.script({"accounts": accounts})
    engine.finish(engine.job(IMAGE))
    job = engine.job(IMAGE)
    engine.step()
    waiting = why(engine, job)
    cooldowns = ChannelHealth.objects.filter(state="circuit_open").values_list("cooldown_until", flat=True)
    assert waiting.code is Code.UNHEALTHY
    assert waiting.next_probe_at == waiting.until == min(cooldowns)
    assert answer(engine, job)["queue"]["reason"] == "no_candidate"


def test_a_job_at_its_customers_limit_in_a_closed_model_out_of_service_or_set_aside_says_so(
    engine: Engine,
) -> None:
    Customer.objects.update(max_in_flight=1)
    running, held = engine.job(VIDEO), engine.job(VIDEO)
    engine.step()
    assert engine.attempts(running)
    assert (why(engine, held).code, why(engine, held).step) == (Code.TENANT_LIMIT, Step.QUEUE)
    assert answer(engine, held)["queue"]["reason"] == "tenant_limit"
    change(PublicModel.objects, enabled=False)
    engine.step()
    assert (why(engine, held).code, why(engine, held).step) == (Code.MODEL_NOT_PUBLISHED, Step.MODEL)
    change(PublicModel.objects, enabled=True)
    change(Channel.objects, state="disabled")
    Customer.objects.update(max_in_flight=1_000)
    engine.step()
    assert (why(engine, held).code, why(engine, held).step) == (Code.OUT_OF_SERVICE, Step.CAPABILITY)
    assert_no_name_of_a_supplier(answer(engine, held))
    set_aside([held.pk], engine.now)
    waiting = why(engine, held)
    assert (waiting.code, waiting.until) == (Code.SET_ASIDE, engine.now + timedelta(minutes=1))
    assert waiting_now(engine.now).by_code == {Code.SET_ASIDE: 1}
    change(Channel.objects, state="enabled")
    engine.run(61)


def test_what_waits_for_no_supply_is_not_explained_but_has_its_two_clocks(engine: Engine) -> None:
    job = engine.job(VIDEO)
    engine.finish(job)
    assert waiting_of(job, engine.now) is None
    told = printed(job.public_id)
    assert f"{job.public_id} waits for no supply: it is succeeded." in told
    assert "executing: not begun" not in told


def test_with_the_dispatcher_stopped_the_verdict_names_it_first_and_what_it_saw_last(engine: Engine) -> None:
    fill(engine)
    job = engine.job(VIDEO)
    engine.step()
    assert waiting_now(engine.now).verdict.code == "blocked"
    engine.now += timedelta(seconds=60)
    found = waiting_now(engine.now)
    assert (found.verdict.code, found.verdict.waiting) == ("dispatcher_silent", 1)
    assert found.by_code == {Code.CAPACITY_FULL: 1}
    assert found.dispatcher.last_scan_at == engine.now - timedelta(seconds=60)
    assert why(engine, job).code is Code.DISPATCHER_SILENT
    assert answer(engine, job)["queue"]["reason"] != "dispatcher_silent"


def test_one_statement_reads_the_counts_whatever_waits(
    engine: Engine, django_assert_num_queries: Any
) -> None:
    fill(engine)
    for _ in range(7):
        engine.job(VIDEO)
        engine.job(VIDEO, duration_s=9)
    engine.step()
    with django_assert_num_queries(5):
        found = waiting_now(engine.now)
    assert (found.waiting, found.by_code) == (14, {Code.CAPACITY_FULL: 14})
    assert found.by_model == {"seedance-2.0-933": {Code.CAPACITY_FULL: 14}}
    assert [group.jobs for group in found.groups] == [7, 7]
    assert all(group.round.startswith("rnd_") and group.reasons["capacity_full"] for group in found.groups)
    assert found.oldest_since == engine.now - timedelta(seconds=1)
    assert {life.cluster for life in found.clusters} <= {"control", "traffic"}


def test_r9_the_reasons_add_up_to_what_waits_in_twenty_random_states(engine: Engine) -> None:
    engine.step()
    world = RandomWorld(engine, Random(9))
    seen: set[Code] = set()
    for _ in range(20):
        world.change()
        found = waiting_now(engine.now)
        waiting = waiting_jobs()
        told = Counter(queue.code for job in waiting if (queue := customer_queue(job, engine.now)))
        assert found.waiting == len(waiting)
        assert sum(found.by_code.values()) == found.waiting
        assert sum(group.jobs for group in found.groups) == found.waiting
        assert sum(sum(counted.values()) for counted in found.by_model.values()) == found.waiting
        assert found.by_code == told, "each job by itself says the same"
        seen |= set(told)
    assert len(seen) >= 6, seen
    world.mend()


def waiting_jobs() -> list[Job]:
    """As the rows of the jobs say, whatever was counted."""
    looked_at = Q(line__isnull=False) | Q(next_action_at__isnull=False)
    jobs = Job.objects.select_related("line__lot__round", "line__tenant").filter(looked_at)
    return list(jobs.filter(state__in=(JobState.QUEUED, JobState.DISPATCHING)))


class RandomWorld:
    """Customers come and leave, and everything that can hold a job up does so now and then."""

    def __init__(self, engine: Engine, dice: Random) -> None:
        self.engine, self.dice = engine, dice
        self.clients = [engine.api, *(self._client(name) for name in ("globex", "initech"))]
        self.bodies = [
            VIDEO,
            {**VIDEO, "duration_s": 9},
            {**VIDEO, "model": "seedance-1.0-pro", "resolution": "720p"},
            IMAGE,
        ]
        self.disturbances: list[Callable[[], None]] = [
            lambda: change(Channel.objects.filter(slug="ark-beijing"), state="disabled"),
            lambda: change(Channel.objects, state="enabled"),
            lambda: change(PublicModel.objects.filter(slug="seedream-4.0"), enabled=False),
            lambda: change(PublicModel.objects, enabled=True),
            lambda: self._script({"do": {"error": "ServerOverloaded", "retry_after": "30"}}),
            lambda: self._script({"do": {"error": "InputTextSensitiveContentDetected"}}),
            lambda: self._script({"do": {"answer": "drop_after_acceptance"}}),
            lambda: self._limit(self.dice.choice([1, 2, 1_000])),
            self._cancel_one,
            self._set_one_aside,
        ]

    def change(self) -> None:
        for _ in range(self.dice.randrange(2, 6)):
            client, body = self.dice.choice(self.clients), self.dice.choice(self.bodies)
            user = self.dice.choice(["", "anna", "bo"])
            client.post("/api/v1/jobs/", {**body, "end_user": user}, format="json")
        self.dice.choice(self.disturbances)()
        for _ in range(self.dice.randrange(3)):
            self.engine.step()

    def mend(self) -> None:
        change(Channel.objects, state="enabled")
        change(PublicModel.objects, enabled=True)
        self._limit(1_000)

    def _client(self, name: str) -> Any:
        _, key = issue_key(create_customer(name, NOW, group="studio", deposit_micros=1_000_000_000))
        return self.engine.client(key.secret)

    def _script(self, rule: dict[str, Any]) -> None:
        self.engine.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 2, **rule}]})

    def _limit(self, most: int) -> None:
        Customer.objects.filter(name="globex").update(max_in_flight=most)

    def _cancel_one(self) -> None:
        if waiting := waiting_jobs():
            cancel(self.dice.choice(waiting).pk, self.engine.now)

    def _set_one_aside(self) -> None:
        if waiting := waiting_jobs():
            set_aside([self.dice.choice(waiting).pk], self.engine.now)


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("why_waiting", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_tells_people_of_all_and_of_one(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatch.management.commands.why_waiting.now", lambda: engine.now)
    fill(engine)
    job = engine.job(VIDEO)
    engine.step()
    told = printed()
    assert "Waiting: 1. Of these do not move: 1. No free slot" in told
    assert "1  seedance-2.0-933: capacity_full" in told
    told = printed(job.public_id)
    assert told.startswith("Health and capacity: No free slot: those who could take it are full.")
    assert "Place 1 among its customer's jobs for this model." in told
    assert told.count("taken by att_") == SLOTS
    with pytest.raises(CommandError, match="There is no job job_none"):
        printed("job_none")
