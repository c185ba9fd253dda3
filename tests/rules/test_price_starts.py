"""When a price begins: wall-clock times of a zone as moments of UTC."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from billing.starts import StartError, clocks_change, next_monday, read_start

SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "monday"),
    [
        (SHANGHAI, "2026-11-30T03:00", "2026-12-06T16:00"),  # a Monday there: the next one is meant
        (SHANGHAI, "2026-12-06T15:59", "2026-12-06T16:00"),
        (SHANGHAI, "2026-12-06T16:00", "2026-12-13T16:00"),
        (BERLIN, "2026-03-25T12:00", "2026-03-29T22:00"),  # the clocks go forward on Sunday the 29th
        (BERLIN, "2026-03-18T12:00", "2026-03-22T23:00"),
        (BERLIN, "2026-10-21T12:00", "2026-10-25T23:00"),  # and back on Sunday the 25th of October
        (BERLIN, "2026-10-14T12:00", "2026-10-18T22:00"),
    ],
)
def test_m1_next_monday_is_the_right_moment_with_and_without_a_change_of_clocks(
    zone: ZoneInfo, now: str, monday: str
) -> None:
    assert next_monday(at(now), zone) == at(monday)


def test_m1_a_wall_clock_time_is_read_in_its_zone() -> None:
    assert read_start("2026-12-07T00:00", SHANGHAI) == at("2026-12-06T16:00")
    assert read_start("2026-03-29T03:00", BERLIN) == at("2026-03-29T01:00")
    assert read_start("2026-10-25T02:30", BERLIN) == at("2026-10-25T00:30")  # the first of the two


@pytest.mark.parametrize("text", ["2026-03-29T02:30", "", "tomorrow", "2026-12-07T00:00+01:00"])
def test_a_time_that_the_clocks_skip_and_what_is_no_time_are_refused(text: str) -> None:
    with pytest.raises(StartError):
        read_start(text, BERLIN)


def test_a_change_of_clocks_in_between_is_told() -> None:
    assert clocks_change(at("2026-03-25T12:00"), at("2026-03-30T12:00"), BERLIN)
    assert not clocks_change(at("2026-03-25T12:00"), at("2026-03-30T12:00"), SHANGHAI)
