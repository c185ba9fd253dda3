"""A worker that looks for work by itself, so that it can be stopped in the midst of it: PLACE, NUMBER.

It does what the tasks of the traffic cluster do, beside that cluster, and says what it does in its byte of
the file PLACE."""

import mmap
import sys
from pathlib import Path

import django

django.setup()

from random import SystemRandom  # noqa: E402 - Django stands only now
from time import sleep  # noqa: E402

from django.db import DatabaseError, connection  # noqa: E402
from django.utils.timezone import now  # noqa: E402

from dispatch.lifecycle import AttemptState  # noqa: E402
from dispatch.models import Attempt  # noqa: E402
from dispatch.services.fetch_output import fetch_output  # noqa: E402
from dispatch.services.follow import poll_due  # noqa: E402
from dispatch.services.submit import submit  # noqa: E402

LOOKING, SUBMITTING, POLLING, FETCHING = range(4)
DOING = ("looking", "submitting", "polling", "fetching")
PAUSE_S = 0.1
_DICE = SystemRandom()


def _one_in(state: AttemptState) -> int | None:
    found = list(Attempt.objects.filter(state=state).values_list("pk", flat=True)[:50])
    return _DICE.choice(found) if found else None


def main(place: Path, number: int) -> None:
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 0) as signs:
        while True:
            try:
                _work(signs, number)
            except DatabaseError:  # stopped within a transaction, for longer than its session lives
                connection.close()  # as after a failed task: the worker itself goes on


def _work(signs: mmap.mmap, number: int) -> None:
    ready, generated = _one_in(AttemptState.READY), _one_in(AttemptState.GENERATED)
    if ready is not None:
        signs[number] = SUBMITTING
        submit([ready], now)
    if generated is not None:
        signs[number] = FETCHING
        fetch_output(generated, now)
    seen = 0
    if number % 2:  # polling takes so long that who polls is seldom met at anything else
        signs[number] = POLLING
        seen = poll_due(now)
    signs[number] = LOOKING
    if not seen and ready is None and generated is None:
        sleep(PAUSE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
