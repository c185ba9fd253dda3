"""`manage.py explain FILE`, `manage.py explain --attempt att_…`: why routing decides, or decided, so."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.document import DocumentError
from dispatch.models import Attempt
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.routing.explain import explain
from dispatch.routing.rendering import rendered
from dispatch.routing.replay import ReplayError, replay
from dispatch.routing.router import route
from dispatch.routing.scenario import read_scenarios
from dispatch.routing.snapshot import snapshot
from dispatch.routing.types import RoutingInput

STANDARD_INPUT = "-"


class Command(BaseCommand):
    """A file is routed without a database. An attempt's recorded round is routed again by the versions that
    it names. Exit 2: file or id is wrong; exit 1: the recorded round comes out differently."""

    help = "Explains what routing decides for a scenario file, or decided for an attempt."
    requires_system_checks: list[str] = []  # a scenario needs neither database nor settings

    def add_arguments(self, parser: CommandParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "file", metavar="FILE", nargs="?", help="a scenario file, or - for standard input"
        )
        source.add_argument("--attempt", metavar="ID", help="an attempt's public id")
        parser.add_argument(
            "--json", action="store_true", help="print the decision instead of the explanation"
        )

    def handle(self, *, file: str | None, attempt: str | None, json: bool, **_options: Any) -> None:
        if attempt is not None:
            self._replay(_recorded(attempt), json)
        else:
            self._run(_source(file or STANDARD_INPUT), json)

    def _run(self, source: str, as_json: bool) -> None:
        try:
            scenarios, listed = read_scenarios(source)
        except DocumentError as error:
            raise CommandError(str(error), returncode=2) from error
        if as_json:
            decisions = [route(inputs).as_json() for inputs in scenarios]
            self.stdout.write(json.dumps(decisions if listed else decisions[0]))
        else:
            self.stdout.write("\n".join(_explained(scenarios)), ending="")

    def _replay(self, recorded: Mapping[str, Any], as_json: bool) -> None:
        """What is shown is what was recorded; a difference is told and ends the command with 1."""
        shown = json.dumps(recorded["decision"]) + "\n" if as_json else rendered(explain(recorded))
        self.stdout.write(shown, ending="")
        try:
            differences = replay(recorded, recorded_documents(recorded))
        except ReplayError as error:
            raise CommandError(f"Can't be routed again: {error}") from error
        if differences:
            raise CommandError("\n".join(["Routed again, it comes out differently:", *differences]))


def _source(file: str) -> str:
    try:
        return sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} can't be read: {error}", returncode=2) from error


def _recorded(attempt: str) -> Mapping[str, Any]:
    found = Attempt.objects.select_related("selection_round").filter(public_id=attempt).first()
    if found is None:
        raise CommandError(f"There is no attempt {attempt}", returncode=2)
    snapshot: Mapping[str, Any] = found.selection_round.snapshot
    return snapshot


def _explained(scenarios: list[RoutingInput]) -> Iterator[str]:
    for inputs in scenarios:
        yield rendered(explain(snapshot(inputs, route(inputs))))
