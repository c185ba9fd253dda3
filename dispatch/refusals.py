"""What refusal memory means for the supplies of one public model; pure.

A record closes its own provider for the content. A model that closes on a refusal keeps the content from its
other supplies too: only who refused it may be asked again."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from dispatch.routing.types import Refusal
from health.refusals import PROBE_LOOK_AGAIN, Standing


def at_supplies(
    standings: Mapping[str, Standing], supplies: Iterable[str], closes_model: bool, now: datetime
) -> dict[str, Refusal]:
    """What a selection is told, by supply. `standings`: of the job's content, where it was refused."""
    told = {supply: Refusal(one.state.value, one.next_probe_at) for supply, one in standings.items()}
    if told and closes_model:
        return dict.fromkeys(supplies, _of_the_others(standings.values(), now)) | told
    return told


def _of_the_others(standings: Collection[Standing], now: datetime) -> Refusal:
    """No time opens them, only the end of the record: who waits looks again."""
    opens_at = all_open_at(standings)
    if opens_at is None:
        return Refusal("frozen")
    return Refusal("cooldown", max(opens_at, now + PROBE_LOOK_AGAIN))


def all_open_at(standings: Collection[Standing]) -> datetime | None:
    """When the last of at least one cooldown is over; None: one is frozen."""
    times = [standing.next_probe_at for standing in standings if standing.next_probe_at is not None]
    return max(times) if len(times) == len(standings) else None
