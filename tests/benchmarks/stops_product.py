"""Stops workers in the midst of their work and lets them go on, while jobs flow: STOPS, AT ONCE, SECONDS."""

import os
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import django

django.setup()

from random import SystemRandom  # noqa: E402 - Django stands only now

from django.db import connection  # noqa: E402
from django.utils.timezone import now  # noqa: E402

from billing.authentication import Caller  # noqa: E402
from billing.models import Customer  # noqa: E402
from billing.services.create_customer import create_customer  # noqa: E402
from billing.services.issue_key import issue_key  # noqa: E402
from catalog.audit import Actor  # noqa: E402
from catalog.simulator.scenario import Timing  # noqa: E402
from catalog.simulator.server import Simulator  # noqa: E402
from dispatch.invariants import violations  # noqa: E402
from dispatch.lifecycle import FINAL_JOB_STATES  # noqa: E402
from dispatch.models import Job  # noqa: E402
from dispatch.services.accept import accept  # noqa: E402
from dispatch.services.import_catalogue import apply_import, plan_import  # noqa: E402
from tests.benchmarks.installation import DAEMONS  # noqa: E402
from tests.benchmarks.serving import serve  # noqa: E402
from tests.benchmarks.stops_worker import DOING, LOOKING  # noqa: E402
from tests.engine import DEMO_CATALOGUE, VIDEO, catalogue_environment  # noqa: E402
from tests.journeys.processes import Running, kill, manage, running, wait_until  # noqa: E402
from tests.simulation.database import Database  # noqa: E402
from tests.simulation.timeline import Timeline  # noqa: E402

UNDER_WAY = 30  # jobs, kept so many
SLOTS = 100
ENDED_WITHIN_S = 1_800
LATE = ("I10", "I14")  # of the timeline's findings: who may write what, and when
_DICE = SystemRandom()


class Flow:
    """New jobs as others end, from a thread, until it is left."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._over = Event()
        self._thread = Thread(target=self._feed)

    def __enter__(self) -> "Flow":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._over.wait(0.1):
            for _ in range(UNDER_WAY - unended()):
                accept(self.caller, VIDEO | {"duration_s": 4, "resolution": "480p"}, None, now())
        connection.close()


def unended() -> int:
    return Job.objects.exclude(state__in=FINAL_JOB_STATES).count()


def caller(simulator: Simulator) -> Caller:
    """Of a customer without a limit, with slots enough for what the stopped ones hold."""
    text = DEMO_CATALOGUE.read_text()
    for concurrency in (8, 5, 4, 3, 2):
        text = text.replace(f"concurrency: {concurrency}\n", f"concurrency: {SLOTS}\n")
    plan = plan_import(text, catalogue_environment(simulator), now())
    apply_import(plan, actor=Actor("bench", "command"), now=now())
    customer = create_customer("acme", now(), group="studio", deposit_micros=10**15)
    Customer.objects.filter(pk=customer.pk).update(max_queued=10**6, max_in_flight=10**6)
    customer.refresh_from_db()
    return Caller(customer, issue_key(customer)[0])


def stopped(worker: Running, place: Path, number: int) -> str:
    """What it did when it was stopped; nothing but looking for work, where it was never met at anything."""
    for _ in range(2_000):
        if place.read_bytes()[number] != LOOKING:
            break
        time.sleep(0.005)
    time.sleep(_DICE.uniform(0, 0.05))
    kill(worker.pid, signal.SIGSTOP)
    return DOING[place.read_bytes()[number]]


def main(stops: int, at_once: int, seconds: float) -> None:
    folder = Path(os.environ["FRAMEYARD_DATA_DIR"]).parent
    place = folder / "signs"
    place.write_bytes(bytes(at_once))
    with ExitStack() as stack:
        simulator = stack.enter_context(Simulator(timing=Timing(queue_s=0.5, run_s=2)))
        simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"latency_s": 0.2}}]})
        customer = caller(simulator)
        database = Database()
        database.begin_record()
        for name, command in DAEMONS.items():
            stack.enter_context(running(manage(*command), os.environ, folder / f"{name}.log"))
        workers = [_worker(stack, folder, place, number) for number in range(at_once)]
        met: Counter[str] = Counter()
        with Flow(customer):
            while met.total() < stops:
                met += _round(workers, place, seconds)
        wait_until(lambda: unended() == 0, ENDED_WITHIN_S, "every job has ended")
        log = simulator.world.log()
    posts = Counter(post["reference"] for post in log["posts"])
    record = database.record()
    late = [finding for finding in Timeline(record, ()).violations() if finding[0].startswith(LATE)]
    assert not violations(), violations()
    told = {
        "late writes": len(late),
        "double submissions": sum(count > 1 for count in (posts | Counter(log["accepted"])).values()),
        "lost": unended(),
    }
    figures = {"stops": met.total(), "met": met, "lives": Job.objects.count(), "changes": len(record)}
    serve(lambda: None, **told, **figures)


def _worker(stack: ExitStack, folder: Path, place: Path, number: int) -> Running:
    command = [sys.executable, "-m", "tests.benchmarks.stops_worker", str(place), str(number)]
    return stack.enter_context(running(command, os.environ, folder / f"stopped-{number}.log"))


def _round(workers: list[Running], place: Path, seconds: float) -> Counter[str]:
    """All of them for so long, and then a while of work."""
    wait_until(lambda: any(place.read_bytes()), 180, "somebody works")
    met = Counter(stopped(worker, place, number) for number, worker in enumerate(workers))
    time.sleep(seconds)
    for worker in workers:
        kill(worker.pid, signal.SIGCONT)
    time.sleep(5)
    for worker in workers:
        assert worker.process.poll() is None, worker.output()
    return met


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "*"
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
