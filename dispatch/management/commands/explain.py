"""`manage.py explain FILE`: the routing pipeline on a scenario file, without a database."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.document import DocumentError
from dispatch.routing.explain import explain
from dispatch.routing.rendering import rendered
from dispatch.routing.router import route
from dispatch.routing.scenario import read_scenarios
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import RoutingInput

STANDARD_INPUT = "-"


class Command(BaseCommand):
    """Exit 2: the file is wrong; the message names the path in it."""

    help = (
        "Explains what routing decides for a scenario file, or {'scenarios': [...]} (- for standard input)."
    )
    requires_system_checks: list[str] = []  # the pipeline needs neither database nor settings

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a scenario file, or -")
        parser.add_argument(
            "--json", action="store_true", help="print the decision instead of the explanation"
        )

    def handle(self, *, file: str, json: bool, **_options: Any) -> None:
        try:
            scenarios, listed = read_scenarios(_source(file))
        except DocumentError as error:
            raise CommandError(str(error), returncode=2) from error
        if json:
            self.stdout.write(_as_json(scenarios, listed))
        else:
            self.stdout.write("\n".join(_explained(scenarios)), ending="")


def _source(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} can't be read: {error}", returncode=2) from error


def _as_json(scenarios: list[RoutingInput], listed: bool) -> str:
    decisions = [route(inputs).as_json() for inputs in scenarios]
    return json.dumps(decisions if listed else decisions[0])


def _explained(scenarios: list[RoutingInput]) -> Iterator[str]:
    for inputs in scenarios:
        yield rendered(explain(snapshot(inputs, route(inputs))))
