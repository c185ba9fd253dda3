"""Submits jobs one at a time while workers run, and tells how long each took: JOBS, ROUNDS."""

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import django

django.setup()

from django.utils.timezone import now  # noqa: E402 - Django stands only now

from billing.authentication import Caller  # noqa: E402
from billing.services.create_customer import create_customer  # noqa: E402
from billing.services.issue_key import issue_key  # noqa: E402
from catalog.audit import Actor  # noqa: E402
from catalog.simulator.scenario import Timing  # noqa: E402
from catalog.simulator.server import Simulator  # noqa: E402
from dispatch.invariants import violations  # noqa: E402
from dispatch.models import Attempt  # noqa: E402
from dispatch.services.accept import accept  # noqa: E402
from dispatch.services.import_catalogue import apply_import, plan_import  # noqa: E402
from tests.benchmarks.installation import DAEMONS  # noqa: E402
from tests.benchmarks.serving import serve  # noqa: E402
from tests.engine import DEMO_CATALOGUE, VIDEO, catalogue_environment  # noqa: E402
from tests.journeys.processes import manage, running, wait_until  # noqa: E402


def caller(simulator: Simulator) -> Caller:
    plan = plan_import(DEMO_CATALOGUE.read_text(), catalogue_environment(simulator), now())
    apply_import(plan, actor=Actor("bench", "command"), now=now())
    customer = create_customer("acme", now(), group="studio", deposit_micros=10**15)
    return Caller(customer, issue_key(customer)[0])


def measured_ms(customer: Caller) -> float:
    """From just before the submission to the moment before the first byte; by one clock."""
    began = now()
    job = accept(customer, VIDEO, None, began).job
    sent = Attempt.objects.filter(job=job, request_started_at__isnull=False)
    wait_until(sent.exists, 30, "the provider is asked")
    wait_until(sent.filter(generated_at__isnull=False).exists, 60, "the slot is free again")
    return (sent.get().request_started_at - began).total_seconds() * 1_000


def main(jobs: int, rounds: int) -> None:
    folder = Path(os.environ["FRAMEYARD_DATA_DIR"]).parent
    p50_ms, p99_ms = [], []
    with ExitStack() as stack:
        simulator = stack.enter_context(Simulator(timing=Timing(queue_s=0.1, run_s=0.2)))
        customer = caller(simulator)
        for name, command in DAEMONS.items():
            stack.enter_context(running(manage(*command), os.environ, folder / f"{name}.log"))
        measured_ms(customer)  # everything that a start brings with it
        for _ in range(rounds):
            spans = sorted(_one_after_another(customer, jobs))
            p50_ms.append(spans[len(spans) // 2])
            p99_ms.append(spans[int(len(spans) * 0.99)])
    assert not violations(), violations()
    serve(lambda: None, p50_ms=p50_ms, p99_ms=p99_ms)


def _one_after_another(customer: Caller, jobs: int) -> list[float]:
    spans = []
    for _ in range(jobs):
        spans.append(measured_ms(customer))
        time.sleep(0.1)
    return spans


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
