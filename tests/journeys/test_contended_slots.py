"""Thirty-two workers of four processes want the few slots of a channel, and are killed while they hold them.

A trigger of the database writes down at each grant how many leases of the channel are held then, the new one
among them: what no worker could have made up."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django_q.models import OrmQ

from catalog.models import Channel, Supply
from catalog.revision import bump_revision
from dispatch import tasks
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, CapacityLease, Job
from tests.engine import Engine
from tests.journeys.processes import PATIENCE_S, Running, database_url, kill, running, wait_until

pytestmark = [pytest.mark.journey, pytest.mark.patient]
PROCESSES = 4
FOUGHT_FOR = 5  # slots that even a slow machine fills at once
MODEL = {"model": "seedance-1.0-pro", "prompt": "a lighthouse in a storm", "duration_s": 5}

_WATCH = """
CREATE TABLE grants_seen (channel_id bigint, held int, at timestamptz);
CREATE FUNCTION see_grant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO grants_seen SELECT NEW.channel_id, count(*), clock_timestamp() FROM dispatch_capacitylease
    WHERE channel_id = NEW.channel_id AND released_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER see_grant AFTER INSERT ON dispatch_capacitylease FOR EACH ROW EXECUTE FUNCTION see_grant()
"""
_FORGET = "DROP TRIGGER see_grant ON dispatch_capacitylease; DROP FUNCTION see_grant; DROP TABLE grants_seen"


@pytest.fixture
def watched(engine: Engine, settings: Any) -> Iterator[Engine]:
    """Each worker sends one attempt at a time, so that a kill meets some slots and not all."""
    settings.SUBMIT_TOGETHER = 1
    with connection.cursor() as cursor:
        cursor.execute(_WATCH)
    yield engine
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)


class Workers:
    """Four processes that begin together, while whose clock the engine's goes on with."""

    def __init__(self, engine: Engine, folder: Path, stack: ExitStack) -> None:
        self.engine, self.began_s, self.began_at = engine, time.monotonic(), engine.now
        command = [sys.executable, "-m", "tests.journeys.slot_workers"]
        begin = folder / "begin"
        arguments = [engine.now.isoformat(), str(self.began_s), str(begin)]
        environment = {
            **os.environ,
            "DATABASE_URL": database_url(connection.settings_dict["NAME"]),
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "FRAMEYARD_SUBMIT_TOGETHER": "1",
        }
        self.processes: list[Running] = [
            stack.enter_context(running([*command, *arguments], environment, folder / f"worker-{number}.log"))
            for number in range(PROCESSES)
        ]
        for process in self.processes:
            process.says("ready", PATIENCE_S)
        begin.touch()

    def until(self, condition: object, what: str) -> None:
        def holds() -> bool:
            self.engine.now = self.began_at + timedelta(seconds=time.monotonic() - self.began_s)
            return bool(condition())  # type: ignore[operator]

        wait_until(holds, PATIENCE_S, what)

    def kill(self, processes: list[Running]) -> None:
        for process in processes:
            kill(process.pid)
            process.process.wait(PATIENCE_S)


def set_slots(slots: int) -> None:
    Channel.objects.update(concurrency=slots)
    Supply.objects.update(concurrency=slots)
    bump_revision()


def most_held() -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT channel_id, max(held) FROM grants_seen GROUP BY channel_id")
        return dict(cursor.fetchall())


def grants() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM grants_seen")
        return int(cursor.fetchone()[0])


def reconciled() -> bool:
    """Should the killed ones have held every slot, the others go on once their claims have ended."""
    tasks.reconcile()
    return True


def being_sent() -> int:
    return Attempt.objects.filter(state="submitting").count()


def all_went_wrong(jobs: list[Job]) -> bool:
    """Two don't know, one was refused, and the one that met a full supply is at another one."""
    return (
        Attempt.objects.filter(state="submission_uncertain").count() == 2
        and Job.objects.filter(pk__in=[job.pk for job in jobs], error_code="invalid_input").exists()
        and Attempt.objects.filter(number=2, accepted_at__isnull=False).exists()
    )


def finished(jobs: list[Job]) -> int:
    return Job.objects.filter(pk__in=[job.pk for job in jobs], state__in=FINAL_JOB_STATES).count()


@pytest.mark.parametrize("slots", [3, 10])
def test_a_channel_never_holds_more_than_its_slots_and_gets_those_of_killed_workers_back(
    watched: Engine, tmp_path: Path, slots: int
) -> None:
    Supply.objects.exclude(slug="beijing-seedance-1-0-pro").update(state="disabled")
    set_slots(slots)
    watched.simulator.script(
        {"rules": [{"when": {"call": "submit"}, "do": {"latency_s": 0.2, "queue_s": 0, "run_s": 0.3}}]}
    )
    jobs = [watched.job(MODEL, prompt=f"lighthouse {number}") for number in range(5 * slots)]
    with ExitStack() as stack:
        workers = Workers(watched, tmp_path, stack)
        workers.until(lambda: grants() >= 2 * slots, "slots are granted again")
        workers.until(lambda: 0 < being_sent() < slots, "some are held by workers, and not all")
        workers.kill(workers.processes[:2])
        workers.until(lambda: reconciled() and grants() >= 3 * slots, "the others go on")
        workers.until(being_sent, "a worker holds one")
        workers.kill(workers.processes[2:])
    assert CapacityLease.objects.filter(released_at=None).exists(), "somebody was killed while holding a slot"
    OrmQ.objects.all().delete()  # what was taken or lies there is rung again for whatever is due
    # Whoever was proved not to be sent waits for another supply, of which there is none, until its deadline.
    watched.run(1_260, step_s=20)
    watched.finish(*jobs, within_s=600)
    most = max(most_held().values())
    assert min(slots, FOUGHT_FOR) <= most <= slots, "they were fought for, and never one more was given"
    assert not CapacityLease.objects.filter(released_at=None).exists()
    assert max(watched.accepted().values()) == 1


def test_three_slots_ten_jobs_four_workers_and_everything_that_can_go_wrong(
    watched: Engine, tmp_path: Path
) -> None:
    """S38: an answer that never comes, a validation error, a full supplier, and a killed worker."""
    set_slots(3)
    # Three go to the one account, the fourth to the other. Who meets the full supply hears it last; its next
    # attempt comes to the other account behind the fourth; at the first it would wait for what is unknown.
    wrongs = [
        ("beijing-account-key", {"answer": "drop_after_acceptance", "latency_s": 0.1}),
        ("beijing-account-key", {"answer": "drop_before_response", "latency_s": 0.1}),
        ("beijing-account-key", {"error": "ServerOverloaded", "latency_s": 2}),
        ("singapore-account-key", {"error": "InvalidParameter", "latency_s": 0.1}),
    ]
    rules = [
        {"when": {"call": "submit", "account": account}, "times": 1, "do": wrong} for account, wrong in wrongs
    ]
    usual = {"when": {"call": "submit"}, "do": {"latency_s": 0.5, "queue_s": 0, "run_s": 0.3}}
    watched.simulator.script({"rules": [*rules, usual]})
    jobs = [watched.job(MODEL, prompt=f"lighthouse {number}") for number in range(4)]
    with ExitStack() as stack:
        workers = Workers(watched, tmp_path, stack)
        # Nobody dies before: the simulator says each of these things once, and a second attempt is the last.
        workers.until(lambda: all_went_wrong(jobs), "everything has gone wrong that can")
        uncertain = CapacityLease.objects.filter(attempt__state="submission_uncertain", released_at=None)
        assert list(uncertain.values_list("state", flat=True)) == ["unknown"] * 2
        with transaction.atomic():  # or those that come first are through before the last has come
            jobs += [watched.job(MODEL, prompt=f"lighthouse {number}") for number in range(4, 10)]
        workers.until(being_sent, "a worker holds a slot")
        workers.kill(workers.processes[:1])
        workers.until(lambda: reconciled() and finished(jobs) >= 4, "the others finish what can be finished")
        workers.kill(workers.processes[1:])
    OrmQ.objects.all().delete()
    watched.run(400, step_s=20)
    watched.finish(*jobs, within_s=600)
    assert max(most_held().values()) <= 3
    assert not CapacityLease.objects.filter(released_at=None).exists()
    by_error = {job.error_code for job in jobs}
    assert by_error == {"", "invalid_input"}
    assert sum(job.state == "failed" for job in jobs) == 1, "only the request that is wrong fails"
    assert max(watched.accepted().values()) == 1
    for job in jobs:
        assert len(watched.attempts(job)) <= 2
