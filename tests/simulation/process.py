"""One simulating process, `python -m tests.simulation.process`: orders in, lives out, as JSON lines.

It has a database of its own on the server that DATABASE_URL names."""

import gc
import json
import sys
import time
from contextlib import nullcontext
from typing import Any

from tests.simulation import process_clock

process_clock.install()  # before anybody imports `now`

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402

from tests.simulation.installation import Installation  # noqa: E402
from tests.simulation.life import Life, Outcome  # noqa: E402
from tests.simulation.mutations import planted  # noqa: E402


def main() -> None:
    call_command("migrate", verbosity=0)
    installation = Installation()
    gc.freeze()
    say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        began = time.monotonic()
        with planted(order["mutation"], installation) if order.get("mutation") else nullcontext():
            outcome = Life(installation, order["seed"], frozenset(order.get("left_out", ()))).run()
        say(as_json(outcome) | {"seconds": time.monotonic() - began})


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "findings": [[each.invariant, each.found] for each in outcome.findings],
        "faults": dict(outcome.faults),
        "injected": outcome.injected,
        "posts": dict(outcome.posts),
        "states": dict(outcome.states),
        "families": outcome.families,
        "history": outcome.history,
        "statements": outcome.points,
        "tasks": outcome.tasks,
    }


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
