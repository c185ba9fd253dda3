"""A process of eight worker threads that take the tasks of the queue and scan as often as they can.

Its arguments: the moment that the test's clock showed, the machine's monotonic clock at that moment, and a
file: who is ready before the others waits until it is there."""

import random
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import django

THREADS = 8


def main(moment: datetime, began_s: float, begin: Path) -> None:
    from dispatch import tasks

    def now() -> datetime:
        return moment + timedelta(seconds=time.monotonic() - began_s)

    tasks.now = now  # type: ignore[assignment]
    print("ready", flush=True)
    while not begin.exists():
        time.sleep(0.01)
    threads = [threading.Thread(target=_work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _work(number: int) -> None:
    from dispatch import tasks

    while True:  # until it is killed
        if not _one_task():
            (tasks.poll if number == 0 else tasks.scan_now)()
            time.sleep(random.uniform(0.01, 0.05))


def _one_task() -> bool:
    """Takes the oldest task that nobody else is taking, and runs it."""
    from django.db import transaction
    from django.utils.module_loading import import_string
    from django_q.models import OrmQ
    from django_q.signing import SignedPackage

    with transaction.atomic():
        task = OrmQ.objects.select_for_update(skip_locked=True).order_by("id").first()
        if task is None:
            return False
        package = SignedPackage.loads(task.payload)
        task.delete()
    import_string(package["func"])(*package["args"])
    return True


if __name__ == "__main__":
    django.setup()
    main(datetime.fromisoformat(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
