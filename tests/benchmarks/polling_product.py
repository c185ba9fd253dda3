"""Polls attempts of two channels as a worker does, and records what they say: ADDRESS, ATTEMPTS.

A unit is a poll recorded. Time jumps by an hour before each round, so that every attempt is due again."""

import sys
from datetime import UTC, datetime, timedelta

import django

django.setup()

from django.conf import settings  # noqa: E402 - Django stands only now

from dispatch.models import Attempt  # noqa: E402
from dispatch.services.follow import poll_due  # noqa: E402
from tests.benchmarks.seeding import NEVER, running_attempts  # noqa: E402
from tests.benchmarks.serving import serve_batches  # noqa: E402
from tests.factories import ChannelFactory, SupplyFactory  # noqa: E402


def at_work(address: str, attempts: int) -> None:
    settings.MASTER_KEYS = []
    Attempt.objects.update(next_look_at=NEVER)  # of another program on this database
    supplies = [SupplyFactory(channel=ChannelFactory(base_url=address)) for _ in range(2)]
    running_attempts(supplies, attempts, datetime(2027, 1, 1, tzinfo=UTC))


class Time:
    def __init__(self) -> None:
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def main(address: str, attempts: int) -> None:
    at_work(address, attempts)
    time = Time()

    def all_due() -> int:
        time.now += timedelta(hours=1)
        seen = 0
        while seen < attempts and (recorded := poll_due(time)):
            seen += recorded
        return seen

    all_due()
    serve_batches(all_due)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
