"""What the four steps did in the last hour, summed over its newest selection rounds."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from dispatch.models import SelectionRound
from dispatch.routing.explain import explain
from dispatch.routing.snapshot import SCHEMA

HOUR: Final = timedelta(hours=1)
MOST_ROUNDS: Final = 200


@dataclass(frozen=True)
class HourOfSteps:
    """`left`: candidates left after steps 1, 2 and 3; the last are those selected or ranked. The sum holds:
    `selected + ranked + excluded = candidates`."""

    rounds: int
    is_capped: bool
    candidates: int
    left: tuple[int, int, int]
    selected: int
    ranked: int
    excluded: int
    switches: int  # rounds for a second attempt


def hour_of_steps(now: datetime) -> HourOfSteps:
    """One query. Rounds whose snapshot is in a form that can't be read are left out."""
    newest = SelectionRound.objects.order_by("-id").values("pk")[:MOST_ROUNDS]
    lately = SelectionRound.objects.filter(pk__in=newest, created_at__gt=now - HOUR)
    told = list(lately.values_list("attempt_number", "snapshot"))
    read = [(number, explain(snapshot)) for number, snapshot in told if snapshot.get("schema") == SCHEMA]
    left = [sum(len(each.steps[step].remained) for _number, each in read) for step in range(3)]
    return HourOfSteps(
        rounds=len(read),
        is_capped=len(told) == MOST_ROUNDS,
        candidates=sum(each.candidates for _number, each in read),
        left=(left[0], left[1], left[2]),
        selected=sum(each.selected for _number, each in read),
        ranked=sum(each.ranked for _number, each in read),
        excluded=sum(each.excluded for _number, each in read),
        switches=sum(number > 1 for number, _each in read),
    )
