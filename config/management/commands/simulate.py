"""`manage.py simulate`: seeded lives of the engine under faults, or the proof that planted bugs are found."""

import os
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tests.simulation.mutation_names import NAMES
from tests.simulation.run import (
    MOST_LIVES,
    Process,
    Summary,
    lives,
    lives_to_find,
    processes,
    shortest,
)

_TOLD_EVERY = 100
_MOST_SHOWN = 5


class Command(BaseCommand):
    """It runs on a server of its own and touches no database of an installation."""

    help = "Simulates many lives with injected faults and checks what must always hold."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seeds", type=int, default=MOST_LIVES, help="how many lives")
        parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
        parser.add_argument("--seed", type=int, help="one life, with its whole history")
        parser.add_argument(
            "--mutations",
            action="store_true",
            help="plant each known bug and count the lives until it is found",
        )
        parser.add_argument("--only", default="", help="of the planted bugs, those whose name holds this")
        parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))

    def handle(self, *_: Any, **options: Any) -> None:
        with processes(1 if options["seed"] else options["processes"]) as running:
            if options["seed"]:
                self._replay(running[0], options["seed"])
            elif options["mutations"]:
                self._mutate(running, options["first"], options["seeds"], options["only"])
            else:
                self._simulate(running, range(options["first"], options["first"] + options["seeds"]))

    def _simulate(self, running: list[Process], seeds: Iterable[int]) -> None:
        summary, began = Summary(), time.monotonic()
        for life in lives(running, ({"seed": seed} for seed in seeds)):
            summary.add(life)
            if life["findings"]:
                told = "; ".join(": ".join(each) for each in life["findings"][:3])
                self.stdout.write(f"seed {life['seed']}: {told}")
            if summary.seeds % _TOLD_EVERY == 0:
                self.stdout.write(f"{summary.seeds} lives, {time.monotonic() - began:.0f} s")
        if summary.seeds:
            self._tell(summary, time.monotonic() - began)
        for life in summary.violations[:_MOST_SHOWN]:
            self._show(shortest(running[0], life))
        if summary.violations:
            raise CommandError(f"{len(summary.violations)} lives broke an invariant.")

    def _tell(self, summary: Summary, seconds: float) -> None:
        self.stdout.write(
            f"{summary.seeds} lives in {seconds:.0f} s, {summary.seconds / summary.seeds:.2f} s each, "
            f"{len(summary.violations)} with a violation"
        )
        self.stdout.write(
            f"{summary.posts} submissions reached the provider for {summary.keys} client keys, "
            f"at most {summary.most_posts} for one; jobs ended {dict(summary.states.most_common())}"
        )
        self.stdout.write(f"{summary.faults.total()} faults of {len(summary.faults)} kinds:")
        for kind, count in summary.faults.most_common():
            self.stdout.write(f"{count:>8}  {kind}")

    def _replay(self, process: Process, seed: int) -> None:
        life = process.live(seed=seed)
        self._show(life)
        if life["findings"]:
            raise CommandError("An invariant was broken.")

    def _show(self, life: dict[str, Any]) -> None:
        self.stdout.write(f"\nseed {life['seed']} (faults left out: {life.get('left_out', [])})")
        for line in life["history"]:
            self.stdout.write(f"  {line}")
        for invariant, found in life["findings"]:
            self.stdout.write(f"  VIOLATION {invariant}: {found}")

    def _mutate(self, running: list[Process], first: int, most: int, only: str) -> None:
        missed = []
        for name in _names(only):
            count, life = lives_to_find(running, name, first, most)
            if life is None:
                missed.append(name)
                self.stdout.write(f"{count:>6} lives  {name}: NOT FOUND")
            else:
                invariants = sorted({found[0] for found in life["findings"]})
                self.stdout.write(f"{count:>6} lives  {name}: {'; '.join(invariants)}")
        if missed:
            raise CommandError(f"{len(missed)} planted bugs were not found.")


def _names(only: str) -> list[str]:
    return [name for name in NAMES if only in name]
