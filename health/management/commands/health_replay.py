"""`manage.py health_replay FILE`: the health machine on timed evidence, without a database."""

from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from health.replay import Case, CaseError, parse_case, replay


class Command(BaseCommand):
    help = "Runs the health machine on a file of timed evidence and prints the state after each piece."
    requires_system_checks: list[str] = []  # the machine needs neither database nor settings

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="one case, or a JSON array of cases")
        parser.add_argument("--json", action="store_true", help="print the states as JSON")

    def handle(self, *, file: Path, json: bool, **_options: object) -> None:
        document = _read(file)
        if isinstance(document, list):
            cases = [_case(one, f"case {number}: ") for number, one in enumerate(document)]
        else:
            cases = [_case(document)]
        if not json:
            for case in cases:
                self._print(case)
            return
        states = [list(replay(case)) for case in cases]
        self.stdout.write(dumps(states if isinstance(document, list) else states[0]))

    def _print(self, case: Case) -> None:
        self.stdout.write(f"{case.subject}, {case.capacity} slots")
        for evidence, state in zip(case.evidence, replay(case), strict=True):
            piece = " ".join(filter(None, (evidence.kind, evidence.scope, evidence.code, evidence.supply)))
            self.stdout.write(f"  {evidence.at:%Y-%m-%d %H:%M:%S}  {piece:<44}{_in_words(state)}")


def _read(file: Path) -> Any:
    try:
        return loads(file.read_text())
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"{file} is not JSON: {error}") from error


def _case(document: Any, where: str = "") -> Case:
    try:
        return parse_case(document)
    except CaseError as error:
        raise CommandError(f"{where}{error}") from error


def _in_words(state: dict[str, Any]) -> str:
    words = f"{state['state']:<13}{state['effective_capacity']} slots, epoch {state['epoch']}"
    if state["recovery_successes"]:
        words += f", {state['recovery_successes']} successes"
    if state["cooldown_until"]:
        words += f", until {state['cooldown_until']}"
    return words
