"""A worker cluster is SIGKILLed while six jobs stand at six points of their lives; each comes out right.

The points: before the claim, after the claim (connecting), during the POST, after the answer but before its
commit, while polling, while fetching. One kill meets them all, so that one minute of lease is waited for."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from billing.authentication import Caller
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.simulator.server import Simulator
from dispatch.models import Attempt, Bell, Job, ProviderEvent
from dispatch.services.accept import accept
from tests.engine import DEMO_CATALOGUE, VIDEO
from tests.invariants import assert_invariants
from tests.journeys.conftest import Start, load_catalogue
from tests.journeys.processes import PATIENCE_S, Running, busy, kill, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.patient]

ANYWHERE = VIDEO | {"duration_s": 4, "resolution": "480p"}
AT_THE_GATE = {"model": "seedance-1.0-pro", "prompt": "fog", "duration_s": 5, "resolution": "480p"}


@contextmanager
def deaf_gate() -> Iterator[str]:
    """An address where a connection begins and never stands: its backlog is full."""
    with socket.socket() as gate, socket.socket() as first, socket.socket() as second:
        gate.bind(("127.0.0.1", 0))
        gate.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(gate.getsockname())
        yield f"http://127.0.0.1:{gate.getsockname()[1]}"


@contextmanager
def locked(job: Job) -> Iterator[psycopg.Connection]:
    """Nobody else moves this job meanwhile."""
    with psycopg.connect(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"]) as holder:
        holder.execute("SELECT id FROM dispatch_job WHERE id = %s FOR UPDATE", [job.pk])
        yield holder
        holder.rollback()


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock' AND query LIKE '%dispatch_job%'"
        )
        return bool(cursor.fetchone()[0])


class World:
    """Jobs, and what the provider does with the next of them."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator
        customer = create_customer("acme", timezone.now(), group="studio", deposit_micros=10**12)
        self.caller = Caller(customer, issue_key(customer)[0])

    def job(self, body: dict[str, object], **do: object) -> Job:
        if do:
            self.simulator.script({"rules": [{"when": {"call": "submit"}, "times": 1, "do": do}]})
        return accept(self.caller, body, None, timezone.now()).job

    def hang_next_poll(self) -> None:
        self.simulator.script({"rules": [{"when": {"call": "status"}, "times": 1, "do": {"answer": "hang"}}]})

    def posts(self) -> int:
        return len(self.simulator.world.log()["posts"])


def attempt_of(job: Job, **facts: object) -> Callable[[], bool]:
    return lambda: Attempt.objects.filter(job=job, **facts).exists()


def test_each_job_comes_out_right_wherever_the_kill_met_it(start: Start, simulator: Simulator) -> None:
    with deaf_gate() as gate:
        text = DEMO_CATALOGUE.read_text().replace("priority: 100}", "priority: 900}")
        before, after = text.split("  ark-singapore:\n", 1)
        after = after.replace("{env: FRAMEYARD_SIMULATOR_URL, path: /ark/api/v3}", gate, 1)
        load_catalogue(simulator, f"{before}  ark-singapore:\n{after}")
        world = World(simulator)
        patience = {
            "FRAMEYARD_PROVIDER_CONNECT_TIMEOUT_S": "300",
            "FRAMEYARD_PROVIDER_DEADLINE_S": "300",
            "FRAMEYARD_TRAFFIC_WORKERS": "7",
        }
        traffic = start("worker", "traffic", **patience)
        start("worker", "control")
        start("pulse")
        answers = Bell.objects.filter(name="poll", answered_at__isnull=False)
        wait_until(answers.exists, PATIENCE_S, "the cluster answers")
        _bring_all_to_their_points_and_kill(world, traffic)


def _bring_all_to_their_points_and_kill(world: World, traffic: Running) -> None:
    fetching = world.job(ANYWHERE, output="slow")
    wait_until(attempt_of(fetching, state="fetching"), PATIENCE_S, "a job is being fetched")
    polling = world.job(ANYWHERE, run_s=20)
    wait_until(attempt_of(polling, accepted_at__isnull=False), PATIENCE_S, "a job is accepted")
    world.hang_next_poll()
    connecting = world.job(AT_THE_GATE)
    wait_until(attempt_of(connecting, state="submitting"), PATIENCE_S, "a job is claimed")
    posted = world.posts()
    posting = world.job(ANYWHERE, answer="hang")
    wait_until(attempt_of(posting, body_sent_at__isnull=False), PATIENCE_S, "a job is being sent")
    wait_until(lambda: world.posts() > posted, PATIENCE_S, "the provider has it")
    answered = world.job(ANYWHERE, latency_s=12)
    wait_until(attempt_of(answered, body_sent_at__isnull=False), PATIENCE_S, "another is being sent")
    with locked(answered):
        wait_until(waits_for_a_lock, PATIENCE_S, "its answer waits to be recorded")
        unclaimed = _a_job_that_nobody_has_claimed(world, traffic)
        killed_at = timezone.now()
        for member in reversed(traffic.family()[1:]):
            kill(member.pid)
        kill(traffic.pid, signal.SIGCONT)
        _let_the_download_end(world, fetching)
    answers = Bell.objects.filter(name="poll", answered_at__gt=killed_at)
    wait_until(answers.exists, busy(15), "the next cluster answers")
    jobs = {
        "before the claim": unclaimed,
        "after the claim": connecting,
        "during the POST": posting,
        "after the answer": answered,
        "while polling": polling,
        "while fetching": fetching,
    }
    _await_delivery(jobs, within_s=5 * PATIENCE_S)
    _assert_each_came_out_right(world, list(jobs.values()))


def _a_job_that_nobody_has_claimed(world: World, traffic: Running) -> Job:
    """Its submit task waits in the queue of a cluster that is stopped, and dies so; the guard, which would
    replace it before, stands still as well."""
    for member in traffic.family():
        kill(member.pid, signal.SIGSTOP)
    job = world.job(ANYWHERE)
    wait_until(attempt_of(job, state="ready"), PATIENCE_S, "a job is selected")
    return job


def _let_the_download_end(world: World, job: Job) -> None:
    """Before the next cluster is there: a download that it began slowly would last for minutes."""
    provider_job = Attempt.objects.get(job=job).provider_job
    task = world.simulator.world.task(provider_job.provider_job_id)
    assert task is not None
    task.do = replace(task.do, output="")


def _await_delivery(jobs: dict[str, Job], within_s: float) -> None:
    try:
        wait_until(lambda: all(_is_delivered(job) for job in jobs.values()), within_s, "delivered")
    except AssertionError as late:
        attempts = {point: list(job.attempts.values_list("state", flat=True)) for point, job in jobs.items()}
        raise AssertionError(f"{late}: {attempts}") from None


def _is_delivered(job: Job) -> bool:
    job.refresh_from_db()
    assert job.state not in ("failed", "expired", "cancelled"), (job.public_id, job.error_code)
    return job.state == "succeeded"


def _assert_each_came_out_right(world: World, jobs: list[Job]) -> None:
    unclaimed, connecting, posting, answered, polling, fetching = jobs
    states = {
        job.pk: list(job.attempts.order_by("number").values_list("state", "error_code")) for job in jobs
    }
    assert states[connecting.pk] == [("failed", "not_created"), ("succeeded", "")]
    for job in (unclaimed, polling, fetching, posting, answered):
        assert len(states[job.pk]) == 1, (job.public_id, states[job.pk])
    for job in (posting, answered):
        found = ProviderEvent.objects.filter(attempt__job=job, kind="recover", outcome="found")
        assert found.exists(), job.public_id
    assert set(world.simulator.world.log()["accepted"].values()) == {1}
    assert world.posts() == len(jobs)
    assert_invariants()


def test_the_gate_lets_nobody_in() -> None:
    """The point `connecting` would prove nothing if a connection could stand."""
    with deaf_gate() as gate:
        host, port = gate.removeprefix("http://").split(":")
        with pytest.raises(TimeoutError):
            socket.create_connection((host, int(port)), timeout=1)
