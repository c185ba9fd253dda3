"""What a maintenance needs before it may start, and what becomes of a channel's switch; pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

REMIND_BEFORE: Final = timedelta(minutes=15)
LONGEST: Final = timedelta(days=90)
MODES: Final = ("drain", "stop")
AT_END: Final = ("probe", "stay_off")
# The channel's own switch while it lasts. Its circuit is disabled besides: an import of the catalogue, which
# puts the switch back, starts nothing there.
SWITCH: Final[Mapping[str, str]] = {"drain": "draining", "stop": "disabled"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """As typed. `until_at` None: no time was given, or what was given is none."""

    mode: str
    until_at: datetime | None
    at_end: str
    reason: str


def faults_of(
    wanted: Wanted, losses: Collection[str], ticked: Collection[str], now: datetime
) -> dict[str, str]:
    """What keeps it from starting, by field: a code of the console's FAULTS of maintenance.

    `losses` are the tiers that lose their last supply, as `model:tier`; each has to be ticked by name."""
    found = {}
    if wanted.mode not in MODES:
        found["mode"] = "choose"
    if wanted.until_at is None:
        found["until"] = "no_time"
    elif wanted.until_at <= now:
        found["until"] = "past"
    elif wanted.until_at > now + LONGEST:
        found["until"] = "far"
    if wanted.at_end not in AT_END:
        found["at_end"] = "choose"
    if not wanted.reason.strip():
        found["reason"] = "no_reason"
    if set(losses) - set(ticked):
        found["losses"] = "not_ticked"
    return found
