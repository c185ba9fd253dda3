"""Both books in the console: lines, sums that equal them, exports, and the reporting zone."""

import csv
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from billing import ledger
from billing.money import micros_of
from tests.console import SignIn
from tests.factories import CustomerFactory
from tests.money_world import MoneyWorld, make_money_world

LEDGER = "/console/ledger/"


@pytest.fixture
def world(db: None) -> MoneyWorld:
    return make_money_world()


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def exported(client: Client, query: str) -> list[dict[str, str]]:
    text = b"".join(client.get(f"{LEDGER}export/{query}")).decode()  # type: ignore[arg-type]
    return list(csv.DictReader(StringIO(text)))


@pytest.mark.parametrize("book", ["customers", "providers"])
def test_the_totals_equal_the_sums_of_the_lines_and_of_the_export(
    world: MoneyWorld, viewer: Client, book: str
) -> None:
    query = f"?book={book}"
    lines = viewer.get(f"{LEDGER}{query}").context["cut"].rows
    totals = viewer.get(f"{LEDGER}totals/{query}").context["totals"]
    (total,) = totals.sums
    assert total.micros == sum(line.amount_micros for line in lines) != 0
    assert total.lines == len(lines)
    assert total.micros == sum(micros_of(row["amount"]) for row in exported(viewer, query))
    for parts in (totals.by_kind, totals.by_day):
        assert sum(part.micros for part in parts) == total.micros
    if book == "providers":
        (supply,) = totals.supplies
        assert (supply.delivered, supply.spent_micros, supply.per_success_micros) == (2, 400_000, 200_000)


def test_g6_the_lines_are_filtered_by_the_address(world: MoneyWorld, viewer: Client) -> None:
    def kinds(query: str) -> list[str]:
        return [row.kind for row in viewer.get(f"{LEDGER}?{query}").context["cut"].rows]

    job = world.degraded.public_id
    assert kinds(f"job={job}") == ["charge", "release", "reserve"]
    assert kinds(f"job={job}&kind=charge") == ["charge"]
    assert kinds(f"book=providers&job={job}") == ["settled", "reversal", "expected"]
    assert kinds(f"book=providers&customer={world.customer.public_id}&kind=settled") == ["settled"] * 2
    assert kinds("book=providers&supply=nobody") == []
    text = viewer.get(f"{LEDGER}?book=providers&supply=nobody&kind=settled").content.decode()
    assert "No line matches these 2 filters" in text
    assert "No line in the last 7 days" not in text


def test_i7_a_line_at_half_past_eleven_on_the_last_day_falls_in_its_month_of_the_reporting_zone(
    sign_in: SignIn, settings: Settings
) -> None:
    settings.REPORTING_TIME_ZONE = "Asia/Shanghai"
    viewer = sign_in("viewer")
    viewer.cookies["zone"] = "America/New_York"  # a person's own zone moves no line
    customer = CustomerFactory(balance_micros=0)
    ledger.deposit(customer, 1_000_000, "in October", datetime(2026, 10, 31, 15, 30, tzinfo=UTC))  # 23:30
    ledger.deposit(customer, 2_000_000, "in November", datetime(2026, 10, 31, 16, 0, tzinfo=UTC))
    october = "?from=2026-10-01&to=2026-10-31"
    page = viewer.get(f"{LEDGER}{october}")
    assert [row.note for row in page.context["cut"].rows] == ["in October"]
    text = page.content.decode()
    assert "days and times of Asia/Shanghai" in text
    assert 'datetime="2026-10-31T15:30:00Z">2026-10-31 23:30:00<' in text  # I5
    assert "(UTC−4)" not in text
    assert "(UTC−5)" not in text
    totals = viewer.get(f"{LEDGER}totals/{october}").context["totals"]
    assert [(day.name, day.micros) for day in totals.by_day] == [("2026-10-31", 1_000_000)]
    (row,) = exported(viewer, october)
    assert row["time_utc"] == "2026-10-31T15:30:00.000+00:00"
    assert row["time_reporting_zone"] == "2026-10-31T23:30:00.000+08:00"
    november = viewer.get(f"{LEDGER}?from=2026-11-01&to=2026-11-30").context["cut"].rows
    assert [row.note for row in november] == ["in November"]


def test_g10_pages_are_cut_at_a_line_and_p3_nothing_is_counted(world: MoneyWorld, viewer: Client) -> None:
    for number in range(60):
        ledger.deposit(world.customer, 1_000_000, f"=cmd {number}", datetime.now(UTC))
    with CaptureQueriesContext(connection) as captured:
        first = viewer.get(LEDGER).context["cut"]
    # The menu's numbers are counted up to a limit.
    asked = [query["sql"].upper() for query in captured.captured_queries]
    assert not [sql for sql in asked if "COUNT(" in sql and "LIMIT" not in sql]
    few = len(captured)
    for number in range(5):
        ledger.deposit(world.customer, 1_000_000, f"later {number}", datetime.now(UTC))
    second = viewer.get(f"{LEDGER}?older={first.older}").context["cut"]
    shown = [row.pk for row in (*first.rows, *second.rows)]
    assert len(shown) == len(set(shown)) == 67
    assert shown == sorted(shown, reverse=True)
    with CaptureQueriesContext(connection) as captured:
        viewer.get(f"{LEDGER}?size=200")
    assert len(captured) == few
    # A note that a spreadsheet would run is set off.
    assert any(row["note"] == "'=cmd 7" for row in exported(viewer, ""))


def test_g11_the_totals_come_as_a_panel_to_the_page_and_as_a_page_without_script(
    world: MoneyWorld, viewer: Client
) -> None:
    page = viewer.get(LEDGER).content.decode()
    assert 'hx-trigger="load"' in page
    assert f'<a id="show-totals" href="{LEDGER}totals/?' in page
    panel = viewer.get(f"{LEDGER}totals/", headers={"HX-Request": "true"})
    assert "<html" not in panel.content.decode()
    assert "HX-Request" in panel["Vary"]
    assert "<html" in viewer.get(f"{LEDGER}totals/").content.decode()
