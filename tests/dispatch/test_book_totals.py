"""The ledger's totals: kept by the hour, and still the sum of the lines."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from billing import ledger
from billing.models import HourOfBook, SummedTo
from billing.services.sum_books import SETTLED_AFTER, sum_books
from dispatch.models import Attempt
from dispatch.queries.book_totals import Totals, totals
from dispatch.queries.books import CUSTOMERS, PROVIDERS, BookFilter
from dispatch.queries.days import Days
from dispatch.services.count_hours import count_hours
from dispatch.services.settle import provider_cost
from tests.money_world import MoneyWorld, make_money_world

FILTERS = (
    BookFilter(CUSTOMERS),
    BookFilter(CUSTOMERS, kind="charge"),
    BookFilter(PROVIDERS),
    BookFilter(PROVIDERS, supply="kestrel-hd"),
    BookFilter(PROVIDERS, kind="settled"),
)


@pytest.fixture
def money(db: None) -> MoneyWorld:
    return make_money_world()


def days(now: datetime, zone: str = "UTC") -> Days:
    today = now.astimezone(ZoneInfo(zone)).date()
    return Days(today - timedelta(days=6), today, ZoneInfo(zone))


def all_totals(now: datetime) -> list[Totals]:
    return [totals(wanted, days(now, zone)) for wanted in FILTERS for zone in ("UTC", "Asia/Kolkata")]


def summed(now: datetime) -> datetime:
    """As housekeeping leaves it: first it sees the newest line, then it sums up to there."""
    for _ in range(2):
        sum_books(now)
        now += SETTLED_AFTER
    return now


def test_the_sums_of_hours_say_what_the_lines_say(money: MoneyWorld) -> None:
    now = timezone.now()
    before = all_totals(now)
    assert all(each.sums for each in before)
    summed(now)
    count_hours(now)
    assert HourOfBook.objects.filter(book=PROVIDERS).exists()
    assert all_totals(now) == before


def test_each_line_counts_once_whenever_it_comes(money: MoneyWorld) -> None:
    now = summed(timezone.now())
    attempt = Attempt.objects.order_by("pk").first()
    assert attempt is not None
    late = provider_cost(attempt, 70_000, {}, platform_loss=True)
    ledger.correct_cost(late, now - timedelta(hours=5))
    wanted = BookFilter(PROVIDERS, kind="correction")
    told = totals(wanted, days(now))
    assert [each.micros for each in told.sums] == [each.micros for each in told.loss] == [70_000]
    later = summed(now + SETTLED_AFTER)
    assert SummedTo.objects.get(book=PROVIDERS).line > 0
    assert totals(wanted, days(now)) == told
    assert summed(later) > later
    assert totals(wanted, days(now)) == told


def test_the_newest_lines_are_left_for_the_next_time(money: MoneyWorld) -> None:
    now = datetime.now(UTC)
    sum_books(now)
    sum_books(now + SETTLED_AFTER - timedelta(seconds=1))
    assert not HourOfBook.objects.exists()
    sum_books(now + SETTLED_AFTER)
    assert HourOfBook.objects.exists()
