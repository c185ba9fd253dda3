"""The whole engine in one process, on virtual time: the real API, the real tasks, the simulator over HTTP.

Tasks are taken from django-q2's own queue, as a worker would, and run here; the clock moves when told."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils.module_loading import import_string
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signing import SignedPackage
from rest_framework.test import APIClient

from billing.models import ApiKey
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.audit import Actor
from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from dispatch import pulse
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.models import Attempt, Job
from dispatch.services.import_catalogue import apply_import, plan_import
from tests.factories import NOW
from tests.invariants import assert_invariants

VIDEO = {"model": "seedance-2.0-933", "prompt": "a lighthouse in a storm", "duration_s": 5}
IMAGE = {"model": "seedream-4.0", "prompt": "a lighthouse in a storm"}
DEMO_CATALOGUE = Path(settings.BASE_DIR) / "catalog" / "demo" / "catalogue.yaml"


def catalogue_environment(simulator: Simulator) -> dict[str, str]:
    """What the demo catalogue takes from the environment."""
    return {
        "FRAMEYARD_SIMULATOR_URL": simulator.url,
        "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "beijing-account-key",
        "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "singapore-account-key",
    }


class Engine:
    """`now` is the time of everything: web, workers, simulator."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        for door in ("tasks", "api.jobs", "api.assets", "api.images", "callbacks.door"):
            monkeypatch.setattr(f"dispatch.{door}.now", lambda: self.now)
        monkeypatch.setattr("dispatch.api.images.sleep", lambda _: self.step())  # who waits lets time pass
        self.simulator = Simulator(timing=Timing(queue_s=1, run_s=3), clock=lambda: self.now.timestamp())
        self.customer = create_customer("acme", NOW, group="studio", deposit_micros=1_000_000_000)
        row, key = issue_key(self.customer)
        self.key: ApiKey = row
        self.broker = get_broker("control")
        self.broker.listen()
        self.api = self.client(key.secret)

    def client(self, secret: str) -> APIClient:
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        return client

    def load_catalogue(self, text: str | None = None) -> None:
        environment = catalogue_environment(self.simulator)
        plan = plan_import(text or DEMO_CATALOGUE.read_text(), environment, self.now)
        apply_import(plan, actor=Actor("test", "command"), now=self.now)

    def submit(self, body: Mapping[str, Any] = VIDEO, key: str | None = None, **changes: Any) -> Any:
        """The response to POST /api/v1/jobs/."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.api.post("/api/v1/jobs/", {**body, **changes}, format="json", headers=headers)

    def job(self, body: Mapping[str, Any] = VIDEO, **changes: Any) -> Job:
        response = self.submit(body, **changes)
        assert response.status_code == 201, response.content
        return Job.objects.get(public_id=response.json()["id"])

    def drain(self) -> int:
        """Runs what waits in the workers' queues until nothing does; how many tasks ran."""
        ran = 0
        while tasks := self._of_rows() or self._of_words():
            for function, ids in tasks:
                import_string(function)(*ids)
                ran += 1
        return ran

    def _of_rows(self) -> list[tuple[str, Sequence[Any]]]:
        """The first, if there is any."""
        task = OrmQ.objects.order_by("id").first()
        if task is None:
            return []
        package = SignedPackage.loads(task.payload)
        task.delete()
        return [(package["func"], package["args"])]

    def _of_words(self) -> list[tuple[str, Sequence[Any]]]:
        return [(task, ()) for task in sorted(self.broker.words(0)) if task]

    def step(self, seconds: float = 1) -> None:
        """Time passes, the pulse beats, the workers work."""
        self.now += timedelta(seconds=seconds)
        pulse.beat(self.now)
        self.drain()

    def run(self, seconds: float, step_s: float = 5) -> None:
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            self.step(step_s)

    def finish(self, *jobs: Job, within_s: float = 120) -> None:
        """Runs until each job is final; fails where one is not in time."""
        until = self.now + timedelta(seconds=within_s)
        self.drain()
        while pending := [job for job in jobs if self.reload(job).state not in FINAL_JOB_STATES]:
            assert self.now < until, [(job.public_id, job.state, self.attempts(job)) for job in pending]
            self.step(2)

    def reload(self, job: Job) -> Job:
        job.refresh_from_db()
        return job

    def attempts(self, job: Job) -> list[str]:
        return list(Attempt.objects.filter(job=job).order_by("number").values_list("state", flat=True))

    def accepted(self) -> Mapping[str, int]:
        """By client reference, as the provider counted."""
        return self.simulator.world.log()["accepted"]

    def posts(self) -> list[Mapping[str, Any]]:
        """As the provider received them."""
        return list(self.simulator.world.log()["posts"])

    def script(self, call: str = "submit", times: int | None = None, **do: Any) -> None:
        """What the simulator does with such calls from now on, in the place of what it was told before."""
        rule: dict[str, Any] = {"when": {"call": call}, "do": do}
        self.simulator.script({"rules": [rule if times is None else {**rule, "times": times}]})

    def balance(self) -> int:
        self.customer.refresh_from_db()
        return self.customer.balance_micros


@contextmanager
def running_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Invariants are asserted when the test is done with it."""
    engine = Engine(monkeypatch)
    with engine.simulator:
        engine.load_catalogue()
        yield engine
    assert_invariants()
