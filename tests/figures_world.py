"""Figures of a day and of the same day a week before, as housekeeping would have counted them."""

from datetime import datetime, timedelta
from time import sleep
from typing import Final

from django.utils.timezone import now as time_of_now

from catalog.models import PublicModel, Supply
from dispatch.capacity import Kind
from dispatch.hours import HOUR, hour_of
from dispatch.models import HourOfQueue, HourOfWork, PeakOfSlots

WEEK = timedelta(days=7)
PICKS = {"kestrel-hd": 12, "osprey-pro": 6, "wren-lite": 2}  # an hour; 20 together
TIERS = {"wren-lite": "fallback"}

LONGEST_TEST: Final = timedelta(seconds=30)  # that looks at pages of "the last 24 hours"


def now_within_its_hour() -> datetime:
    """The time; shortly before an hour ends, after waiting for the next, for it would move the day's window
    between the figures and the page that shows them."""
    now = time_of_now()
    left = hour_of(now) + HOUR - now
    if left > LONGEST_TEST:
        return now
    sleep(left.total_seconds() + 0.01)
    return time_of_now()


def make_figures(model: PublicModel, now: datetime) -> None:
    """In each hour of the last day 20 picks; 18 of 20 attempts succeeded, one of them too dear. The week
    before: half as many, all good. Nothing at all six hours ago."""
    supplies = {row.slug: row for row in Supply.objects.filter(slug__in=PICKS)}
    last = hour_of(now)
    rows = []
    for back in range(24):
        if back == 6:
            continue
        for slug, picks in PICKS.items():
            bad = 1 if slug != "wren-lite" else 0
            rows.append(_hour(model, supplies[slug], last - back * HOUR, now, picks, bad))
            rows.append(_hour(model, supplies[slug], last - back * HOUR - WEEK, now, picks // 2, 0))
    HourOfWork.objects.bulk_create(rows)
    HourOfQueue.objects.bulk_create(
        HourOfQueue(hour=last - back * HOUR - before, waiting=waiting, seen_at=last - back * HOUR - before)
        for back, waiting in enumerate([3, 0, 0, 14, 22, 9, 4, 1, 0, 0, 2, 5])
        for before in (timedelta(0), WEEK)
    )
    PeakOfSlots.objects.bulk_create(
        PeakOfSlots(
            kind=Kind.SUPPLY, subject_id=supplies["kestrel-hd"].pk, hour=last - back * HOUR, taken=taken,
            seen_at=last - back * HOUR + timedelta(minutes=20),
        )
        for back, taken in ((0, 5), (3, 7), (9, 2), (30, 8))
    )  # fmt: skip


def _hour(
    model: PublicModel, supply: Supply, hour: datetime, now: datetime, picks: int, bad: int
) -> HourOfWork:
    return HourOfWork(
        hour=hour,
        public_model=model,
        supply=supply,
        tier=TIERS.get(supply.slug, "exact"),
        currency="USD",
        picks=picks,
        switches=bad,
        samples=picks,
        successes=picks - bad,
        ended=picks,
        delivered=picks - bad,
        spent_micros=picks * 200_000,
        wasted_micros=bad * 200_000,
        counted_at=now,
    )
