"""`manage.py seed_history --jobs N`: fills an installation with past work, to see it at its size."""

from argparse import ArgumentParser
from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from config.history import has_real_jobs, settle_statistics, write_history


class Command(BaseCommand):
    help = (
        "Fill jobs, attempts, selections, events, results and both books with past work of made-up customers."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--jobs", type=int, default=100_000)
        parser.add_argument("--days", type=int, default=120, help="over how many days until now")
        parser.add_argument("--seed", type=float, default=0.5, help="from -1 to 1: the same one draws alike")
        parser.add_argument(
            "--among-real-jobs", action="store_true", help="also where other customers have jobs"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        if options["jobs"] < 1 or options["days"] < 1 or not -1 <= options["seed"] <= 1:
            raise CommandError("Jobs and days are at least 1, and the seed is from -1 to 1.", returncode=2)
        if has_real_jobs() and not options["among_real_jobs"]:
            raise CommandError(
                "Customers of this installation have jobs of their own. Made-up ones can not be taken out"
                " again, and their costs stand in the books: say --among-real-jobs if that is what you want."
            )
        began_s = monotonic()
        try:
            write_history(options["jobs"], options["days"], timezone.now(), options["seed"], self._say)
        except LookupError as error:
            raise CommandError(f"{error} Import a catalogue first.") from error
        settle_statistics()
        self.stdout.write(f"{options['jobs']:,} jobs in {monotonic() - began_s:.0f} s.")

    def _say(self, stored: int) -> None:
        self.stdout.write(f"{stored:,}")
        self.stdout.flush()
