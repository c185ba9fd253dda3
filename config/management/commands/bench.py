"""`manage.py bench [NAME…]`: runs benchmarks, prints a table of each, and writes it as JSON."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from tests import benchmarks
from tests.benchmarks.measuring import Figures, NoQuietWindow, Plan, Report

DEFAULT = Plan()


class Command(BaseCommand):
    """Exit 1: a first bar is missed. Exit 3: the machine was never quiet enough, so there is no result."""

    help = "Measures the product against a reference in the same run."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "names", metavar="NAME", nargs="*", help=f"of {', '.join(_names())}; default: all"
        )
        parser.add_argument("--windows", type=int, default=DEFAULT.windows, help="of each side")
        parser.add_argument("--window-s", type=float, default=DEFAULT.window_s, help="seconds of each")
        parser.add_argument(
            "--foreign-share",
            type=float,
            default=DEFAULT.foreign_share,
            help="of the machine, used by others",
        )

    def handle(self, *_: Any, names: list[str], **options: Any) -> None:
        plan = Plan(options["windows"], options["window_s"], options["foreign_share"])
        unknown = sorted(set(names) - set(_names()))
        if unknown:
            raise CommandError(f"There is no benchmark {unknown[0]}", returncode=2)
        reports = [self._run(name, plan) for name in names or _names()]
        if not all(report.passed for report in reports):
            raise CommandError("A first bar is missed.")

    def _run(self, name: str, plan: Plan) -> Report:
        try:
            report: Report = import_module(f"{benchmarks.__name__}.{name}").run(plan)
        except NoQuietWindow as error:
            raise CommandError(f"{name}: no quiet window: {error}", returncode=3) from error
        self.stdout.write("\n".join(_table(report)))
        self.stdout.write(f"Written to {_write(report)}")
        return report


def _names() -> list[str]:
    """The modules of the folder that have a run; the programs that they start are `name_program`."""
    modules = [module.name for module in iter_modules(benchmarks.__path__) if "_" not in module.name]
    return [name for name in modules if hasattr(import_module(f"{benchmarks.__name__}.{name}"), "run")]


def _table(report: Report) -> Iterator[str]:
    yield f"{report.benchmark} against {report.reference}; min / median / max"
    yield (
        f"{report.plan.windows} interleaved windows of {report.plan.window_s:g} s; "
        f"{report.discarded} rounds discarded, others over {report.plan.foreign_share:.0%} of the machine"
    )
    for row in report.rows:
        line = f"{row.name:<45}{_written(row.ours)} {row.unit}"
        if row.reference is not None:
            line += f"   reference {_written(row.reference)}   ratio {row.ratio:.3f}"
        yield f"{line}: {row.verdict}"
    yield from report.notes


def _written(it: Figures) -> str:
    return f"{it.least:.3f} / {it.median:.3f} / {it.most:.3f}"


def _write(report: Report) -> Path:
    folder = settings.DATA_DIR / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    path: Path = folder / f"{report.benchmark}-{timezone.now():%Y%m%dT%H%M%SZ}.json"
    rows = [row.as_json() for row in report.rows]
    whole = {**asdict(report), "rows": rows}
    path.write_text(json.dumps(whole, indent=2) + "\n")
    return path
