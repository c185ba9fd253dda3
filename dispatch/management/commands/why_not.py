"""`manage.py why_not SUPPLY --attempt att_…`: what would have made a supply win that round."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.timezone import now

from dispatch.models import SelectionRound
from dispatch.routing.counterfactual import NotBound, WhyNot
from dispatch.routing.reasons import KEYS, REASONS
from dispatch.routing.replay import ReplayError
from dispatch.routing.types import Finding
from dispatch.services.why_not import why_not


class Command(BaseCommand):
    """Exit 2: there is no such round or candidate; exit 1: the round can't be routed again."""

    help = (
        "Tells the least single change of priority, health, slots or price that would have made SUPPLY win."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("supply", metavar="SUPPLY", help="a supply's slug")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--attempt", metavar="ID", help="the attempt that was given to another, att_…")
        source.add_argument("--round", metavar="ID", help="a round without an attempt too, rnd_…")

    def handle(self, *, supply: str, attempt: str | None, round: str | None, **_options: Any) -> None:
        row = _recorded(attempt, round)
        try:
            answer = why_not(row, supply, now())
        except NotBound as error:
            raise CommandError(str(error), returncode=2) from error
        except ReplayError as error:
            raise CommandError(f"Can't be routed again: {error}") from error
        for line in _lines(answer):
            self.stdout.write(line)


def _recorded(attempt: str | None, round_id: str | None) -> SelectionRound:
    named = {"attempt__public_id": attempt} if attempt else {"public_id": round_id}
    row = SelectionRound.objects.select_related("job").filter(**named).first()
    if row is None:
        raise CommandError(f"There is no round of {attempt or round_id}", returncode=2)
    return row


def _lines(answer: WhyNot) -> list[str]:
    if answer.won:
        return [f"{answer.supply} was chosen."]
    ended = f"{answer.chosen} was chosen." if answer.chosen else f"Nobody was chosen: {answer.outcome}."
    changes = [f"  • {change.note}" for change in answer.changes]
    return [
        ended,
        *(f"{it.candidate.key} {_why(it)}" for it in answer.findings),
        *(
            changes
            or ["No single change of its own priority, health, slots or price would have made it win."]
        ),
    ]


def _why(finding: Finding) -> str:
    if finding.reason is None:
        return f"was in place {finding.position}, behind by {KEYS[finding.lost_by or 'supply_id']}."
    details = f" ({finding.details})" if finding.details else ""
    return f"was excluded, {finding.reason}: {REASONS[finding.reason].sentence}{details}"
