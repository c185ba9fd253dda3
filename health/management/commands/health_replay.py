"""`manage.py health_replay FILE`: the health machine on timed evidence, without a database.
`--channel SLUG` or `--supply ID`: on what is recorded, failing where the stored state differs."""

from datetime import datetime
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from catalog.models import Channel, Supply
from health.circuit import Subject
from health.replay import Case, CaseError, parse_case, replay, visible_state
from health.services.replay_recorded import Step, replay_recorded


class Command(BaseCommand):
    help = "Runs the health machine on timed evidence and prints the state after each piece."
    requires_system_checks: list[str] = []  # with a file, the machine needs neither database nor settings

    def add_arguments(self, parser: CommandParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "file", type=Path, nargs="?", metavar="FILE", help="one case, or a JSON array of cases"
        )
        source.add_argument("--channel", metavar="SLUG", help="replay what is recorded of this channel")
        source.add_argument(
            "--supply", metavar="ID", help="replay what is recorded of this supply (id or slug)"
        )
        parser.add_argument("--json", action="store_true", help="print the states as JSON")

    def handle(
        self, *, file: Path | None, channel: str | None, supply: str | None, json: bool, **_options: object
    ) -> None:
        if file:
            self._replay_file(file, json)
        elif channel:
            self._replay_recorded(Subject.CHANNEL, _found(Channel, channel), json)
        elif supply:
            self._replay_recorded(Subject.SUPPLY, _found(Supply, supply), json)

    def _replay_file(self, file: Path, json: bool) -> None:
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

    def _replay_recorded(self, subject: Subject, row: Channel | Supply, json: bool) -> None:
        steps = list(replay_recorded(subject, row.pk))
        states = [visible_state(step.reached, row.concurrency) for step in steps if step.event]
        if json:
            self.stdout.write(dumps(states))
        else:
            for step, state in zip(steps, states, strict=False):  # the last step is what is stored
                if step.event:
                    self._print_line(step.event.at, step.event.cause, state)
        problems = [f"{_name(step)}: {step.problem}" for step in steps if step.problem]
        if problems:
            raise CommandError("\n".join([f"{subject} {row.slug} differs from what is recorded", *problems]))

    def _print(self, case: Case) -> None:
        self.stdout.write(f"{case.subject}, {case.capacity} slots")
        for evidence, state in zip(case.evidence, replay(case), strict=True):
            piece = " ".join(filter(None, (evidence.kind, evidence.scope, evidence.code, evidence.supply)))
            self._print_line(evidence.at, piece, state)

    def _print_line(self, at: datetime, words: str, state: dict[str, Any]) -> None:
        self.stdout.write(f"  {at:%Y-%m-%d %H:%M:%S}  {words:<44}{_in_words(state)}")


def _name(step: Step) -> str:
    return f"event {step.event.public_id}" if step.event else "the stored state"


def _found[Row: (Channel, Supply)](model: type[Row], name: str) -> Row:
    row = model._default_manager.filter(Q(slug=name) | Q(public_id=name)).first()
    if row is None:
        raise CommandError(f"there is no {model._meta.model_name} {name}")
    return row


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
