"""When the channels of one capacity group are full together, the group pauses, and is probed by one; pure.

Capacity errors from two channels within 60 s set its `not_before`; afterwards one request probes."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

TOGETHER = timedelta(seconds=60)
PAUSE = timedelta(seconds=30)  # where no provider said how long
# Providers tell at submission that they are full: a probe that was not told so by then went well.
PROBE_WINDOW = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Press:
    """A capacity error of one channel."""

    at: datetime
    channel_id: int


@dataclass(frozen=True, slots=True)
class Pressure:
    presses: tuple[Press, ...] = ()
    not_before: datetime | None = None
    probing: bool = False  # `not_before` is the end of the probe's window


def pressed(pressure: Pressure, press: Press, until: datetime | None) -> Pressure:
    """After a capacity error; `until` is the provider's own Retry-After."""
    recent = tuple(one for one in pressure.presses if one.at >= press.at - TOGETHER)
    together = any(one.channel_id != press.channel_id for one in recent)
    after = replace(pressure, presses=(*recent, press))
    if not (together or _is_probed(pressure, press.at)):
        return after
    ends = max(until or press.at, press.at + PAUSE, pressure.not_before or press.at)
    return replace(after, not_before=ends, probing=False)


def _is_probed(pressure: Pressure, now: datetime) -> bool:
    return pressure.probing and pressure.not_before is not None and now < pressure.not_before


def probe_due(pressure: Pressure, now: datetime) -> bool:
    """The pause is over and nobody has probed yet: one request may, and claims it."""
    return pressure.not_before is not None and not pressure.probing and now >= pressure.not_before


def claimed(pressure: Pressure, now: datetime) -> Pressure:
    return replace(pressure, probing=True, not_before=now + PROBE_WINDOW)
