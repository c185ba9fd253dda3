"""Fault 7: a worker process is stopped between its permission to send and its first byte, for minutes.

Whatever becomes of it, the provider sees one submission of the job, and no second attempt begins while the
first could still be sent."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.db import connection
from django_q.models import OrmQ

from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Job
from dispatch.services import dispatch_scan
from tests.engine import Engine
from tests.journeys.processes import PATIENCE_S, Running, database_url, kill, running, wait_until
from tests.journeys.stopped_sender import QUICK_DEPARTURE_S

pytestmark = [pytest.mark.journey, pytest.mark.patient]
A = AttemptState


class Stopped:
    """A job whose only worker stands still on its way to the provider; the rest of the engine went on."""

    def __init__(self, engine: Engine, worker: Running, attempt: Attempt) -> None:
        self.engine, self.worker, self.attempt = engine, worker, attempt
        self.job = Job.objects.get(attempts=attempt)
        wait_until(self._stands, PATIENCE_S, "the worker stops itself")
        engine.run(600, step_s=40)

    def _stands(self) -> bool:
        assert self.worker.process.poll() is None, self.worker.output()
        return psutil.Process(self.worker.pid).status() == psutil.STATUS_STOPPED

    def goes_on(self) -> None:
        time.sleep(QUICK_DEPARTURE_S)
        kill(self.worker.pid, signal.SIGCONT)
        assert self.worker.process.wait(PATIENCE_S) == 0, self.worker.output()

    def references_posted(self) -> list[str]:
        return [post["reference"] for post in self.engine.simulator.world.log()["posts"]]


@pytest.fixture
def stopped(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[Stopped]:
    engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.get()
    OrmQ.objects.all().delete()  # the bell was answered, by the worker that is stopped
    arguments = [str(attempt.pk), engine.now.isoformat(), request.param]
    command = [sys.executable, "-m", "tests.journeys.stopped_sender", *arguments]
    variables = {
        "DATABASE_URL": database_url(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    with running(command, {**os.environ, **variables}, tmp_path / "worker.log") as worker:
        yield Stopped(engine, worker, attempt)


@pytest.mark.parametrize("stopped", ["allowed"], indirect=True)
def test_a_worker_that_slept_after_it_was_allowed_to_send_sends_nothing(stopped: Stopped) -> None:
    assert stopped.engine.attempts(stopped.job) == [A.SUBMISSION_UNCERTAIN], "it may still send"
    stopped.goes_on()
    assert stopped.references_posted() == []
    assert stopped.engine.attempts(stopped.job) == [A.FAILED]
    stopped.engine.finish(stopped.job)
    assert stopped.engine.attempts(stopped.job) == [A.FAILED, A.SUCCEEDED]
    second = stopped.job.attempts.get(number=2)
    assert stopped.references_posted() == [second.client_request_key]


@pytest.mark.parametrize("stopped", ["writing"], indirect=True)
def test_a_worker_that_slept_in_the_very_write_is_waited_for_and_its_late_submission_is_the_only_one(
    stopped: Stopped,
) -> None:
    assert stopped.engine.attempts(stopped.job) == [A.SUBMISSION_UNCERTAIN], "it may still send"
    stopped.goes_on()
    stopped.engine.finish(stopped.job)
    assert stopped.engine.attempts(stopped.job) == [A.SUCCEEDED]
    assert stopped.references_posted() == [stopped.attempt.client_request_key]


@pytest.mark.parametrize("stopped", ["writing"], indirect=True)
def test_once_the_sleeping_worker_is_dead_two_listings_prove_that_nothing_was_sent(stopped: Stopped) -> None:
    kill(stopped.worker.pid)
    stopped.worker.process.wait(PATIENCE_S)
    stopped.engine.finish(stopped.job, within_s=900)
    assert stopped.engine.attempts(stopped.job) == [A.FAILED, A.SUCCEEDED]
    second = stopped.job.attempts.get(number=2)
    assert stopped.engine.accepted() == {second.client_request_key: 1}
