"""What the queue's benchmark measures, each work on a database of its own: WORK and its sizes.

`scan` and `heads` are units, repeated as long as is wanted; the others measure themselves and tell."""

import random
import sys
from collections.abc import Callable
from contextlib import contextmanager
from time import perf_counter, process_time

import django

django.setup()

import psycopg  # noqa: E402 - Django stands only now
from django.conf import settings  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.utils.timezone import now  # noqa: E402

from billing.models import ApiKey  # noqa: E402
from catalog.models import PublicModel  # noqa: E402
from dispatch import queue, queue_heads  # noqa: E402
from dispatch.models import Job, Lot  # noqa: E402
from dispatch.queue_heads import WaitingLine, heads_of, waiting_lines  # noqa: E402
from dispatch.queue_state import read_state, write_state  # noqa: E402
from dispatch.services.dispatch_scan import scan  # noqa: E402
from tests.benchmarks import seeding  # noqa: E402
from tests.benchmarks.serving import serve  # noqa: E402

TENANTS = 10
HEADS = 50
BATCH = 200
ROUNDS = 5
SLOTS = 20
settings.MASTER_KEYS = []


def full_queue(jobs: int, tenants: int = TENANTS) -> tuple[PublicModel, list[ApiKey]]:
    """So many jobs wait, and the one slot is taken."""
    model, keys, since = seeding.serving_model([1]), seeding.tenants(tenants), now()
    for key in keys:
        seeding.fill_queue(key, model, max(jobs // tenants, 2), since)
    scan(now)
    seeding.settle_statistics()
    return model, keys


def serve_scans(jobs: int) -> None:
    full_queue(jobs)
    scan(now)
    serve(lambda: scan(now))


def serve_heads() -> None:
    """On the database that a `scan` filled: what a scan reads and locks of one tenant's line."""
    line = _lines()[0]
    serve(lambda: _claim(line), pages=_pages(line))


def serve_aged_heads(jobs: int, claimed: int) -> None:
    """As `heads`, once so many jobs left the line while somebody's snapshot still sees them there."""
    full_queue(jobs, tenants=1)
    with _old_snapshot():
        for _ in range(claimed // BATCH):
            _leave(BATCH)
        serve(lambda: _claim(_lines()[0]))


def _lines() -> list[WaitingLine]:
    return sorted(waiting_lines(Lot.objects.values_list("pk", flat=True)), key=lambda line: line.line_id)


def _claim(line: WaitingLine) -> None:
    with transaction.atomic():
        found = heads_of([line], HEADS, now())[line.line_id]
        ids = [head.job for head in found.heads]
        assert len(Job.objects.select_for_update(skip_locked=True).filter(pk__in=ids)) == HEADS
        transaction.set_rollback(True)


def _pages(line: WaitingLine) -> int:
    """Buffers that the read of the heads touches, by the planner's own count."""
    asked = {
        "lines": [line.line_id],
        "watermarks": [line.watermark_at],
        "last_users": [line.last_end_user],
        "depth": HEADS,
        "overdue": queue_heads.MOST_OVERDUE_PASSED,
        "now": now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {queue_heads._HEADS}", asked)
        plan = cursor.fetchone()[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@contextmanager
def _old_snapshot():
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute("SET SESSION idle_in_transaction_session_timeout = 0")
        other.commit()
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        yield


def _leave(jobs: int) -> None:
    """So many heads leave the line, with the writes of a scan that started them."""
    with transaction.atomic():
        state = read_state(_lines())
        line = next(iter(state.lines.values()))[0]
        found = heads_of([line], jobs, now())[line.line_id]
        ids = [head.job for head in found.heads]
        Job.objects.filter(pk__in=ids).update(line_id=None, state="cancelled", finished_at=now())
        if found.watermark_at is not None:
            state.watermarks[line.line_id] = found.watermark_at
        queue.lock_lines([line.line_id])
        queue.leave_many({line.line_id: len(ids)})
        write_state(state, now())


def tell_starts(jobs: int) -> None:
    model, keys, since = seeding.serving_model([1]), seeding.tenants(TENANTS), now()
    for key in keys:
        seeding.fill_queue(key, model, (ROUNDS + 1) * jobs // TENANTS, since)
    seeding.settle_statistics()
    seconds, cpu_s = [], []
    for number in range(1, ROUNDS + 1):
        seeding.resize(model, number * jobs)
        wall, cpu, began = _measured(lambda: scan(now))
        assert began == jobs, began
        seconds.append(wall)
        cpu_s.append(cpu)
    serve(lambda: None, seconds=seconds, cpu_s=cpu_s)


def tell_flood(flood: int, quiet: int, tenants: int) -> None:
    """One tenant's flood; all others have a job now and then. Every slot is free again at each scan."""
    model, since = seeding.serving_model([SLOTS]), now()
    flooding, *others = seeding.tenants(tenants)
    seeding.fill_queue(flooding, model, flood, since)
    seeding.settle_statistics()
    dice, submitted, waited = random.Random(1), {}, []
    for turn in range(60):
        for key in dice.sample(others[:quiet], SLOTS // 2):
            submitted[_submit(key, model)] = turn
        scan(now)
        for job in Job.objects.filter(pk__in=submitted, state="dispatching").values_list("pk", flat=True):
            waited.append(turn - submitted.pop(job) + 1)
        _complete_all()
    assert not submitted
    waited.sort()
    for key in others:
        _submit(key, model)
    scan(now)
    scans = [_measured(lambda: scan(now)) for _ in range(20)]
    told = {
        "scan_ms": [wall * 1_000 for wall, _, _ in scans],
        "scan_cpu_ms": [cpu * 1_000 for _, cpu, _ in scans],
    }
    serve(lambda: None, scans_p95=[waited[int(len(waited) * 0.95)]], **told)


def _submit(key: ApiKey, model: PublicModel) -> int:
    with transaction.atomic():
        return seeding.admit(key, model, now()).pk


def _complete_all() -> None:
    """By statements of our own: what follows an end is not what is measured here."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dispatch_capacitylease SET state = 'released', released_at = now(), outcome = 'completed'"
            " WHERE released_at IS NULL"
        )
        cursor.execute("UPDATE dispatch_occupancy SET confirmed = 0")
        cursor.execute(
            "UPDATE dispatch_attempt SET state = 'cancelled', finished_at = now() WHERE state = 'ready'"
        )
        cursor.execute(
            "UPDATE dispatch_job SET state = 'cancelled', finished_at = now() WHERE state = 'dispatching'"
        )


def _measured(work: Callable[[], int]) -> tuple[float, float, int]:
    began, cpu_began = perf_counter(), process_time()
    done = work()
    return perf_counter() - began, process_time() - cpu_began, done


WORKS: dict[str, Callable[..., None]] = {
    "scan": serve_scans,
    "heads": serve_heads,
    "aged": serve_aged_heads,
    "starts": tell_starts,
    "flood": tell_flood,
}

if __name__ == "__main__":
    WORKS[sys.argv[1]](*map(int, sys.argv[2:]))
