"""The measured side of a benchmark: runs units of work for as many seconds as it is told, a line each."""

import json
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from time import monotonic, process_time
from typing import Any


def serve(unit: Callable[[], object], **told: Any) -> None:
    """`told` is said first, when all is ready: versions, sizes. Ends with standard input."""
    _say(told)
    for line in sys.stdin:
        _say(_measured(unit, float(line)))


def serve_batches(
    batch: Callable[[], int], *, prepare: Callable[[], None] | None = None, **told: Any
) -> None:
    """As `serve`, of units that come many at a time: `batch` says how many it did. One batch at least.

    `prepare` comes before each window and is no part of it."""
    _say(told)
    for line in sys.stdin:
        if prepare is not None:
            prepare()
        began, cpu_began, units = monotonic(), process_time(), 0
        while not units or monotonic() - began < float(line):
            units += batch()
        _say({"units": units, "cpu_s": process_time() - cpu_began, "wall_s": monotonic() - began})


def serve_windows(window: Callable[[], dict[str, Any]], **told: Any) -> None:
    """Of a program that measures itself: a window is as long as it takes."""
    _say(told)
    for _ in sys.stdin:
        _say(window())


def _measured(unit: Callable[[], object], seconds: float) -> dict[str, float]:
    began, cpu_began = monotonic(), process_time()
    ends = [began]
    while ends[-1] - began < seconds:
        unit()
        ends.append(monotonic())
    cpu_s = process_time() - cpu_began
    spans_ms = sorted((end - start) * 1_000 for start, end in pairwise(ends))
    quantiles = {"p50_ms": _quantile(spans_ms, 0.5), "p99_ms": _quantile(spans_ms, 0.99)}
    return {"units": len(spans_ms), "cpu_s": cpu_s, "wall_s": ends[-1] - began, **quantiles}


def _quantile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))]


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
