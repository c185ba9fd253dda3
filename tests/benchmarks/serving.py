"""The measured side of a benchmark: runs units of work for as many seconds as it is told, a line each."""

import json
import sys
from collections.abc import Callable
from time import monotonic, process_time
from typing import Any


def serve(unit: Callable[[], object], **told: Any) -> None:
    """`told` is said first, when all is ready: versions, sizes. Ends with standard input."""
    _say(told)
    for line in sys.stdin:
        _say(_measured(unit, float(line)))


def _measured(unit: Callable[[], object], seconds: float) -> dict[str, float]:
    began, cpu_began, units = monotonic(), process_time(), 0
    while monotonic() - began < seconds:
        unit()
        units += 1
    return {"units": units, "cpu_s": process_time() - cpu_began, "wall_s": monotonic() - began}


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
