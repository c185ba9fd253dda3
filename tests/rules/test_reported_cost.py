"""What a provider says that it costs, against what was quoted (fault 39)."""

from collections.abc import Mapping
from typing import Any

import pytest

from billing.reported import Cost, reported_cost

RATES = {"CNY": (7, 50)}  # 0.14 USD for one


@pytest.mark.parametrize(
    ("usage", "micros", "by", "doubt"),
    [
        ({}, 700_000, "rule", ""),
        ({"cost": None}, 700_000, "rule", ""),
        ({"cost": "0.70", "currency": "USD"}, 700_000, "report", ""),
        ({"cost": "0.76", "currency": "USD"}, 760_000, "report", ""),
        ({"cost": "0", "currency": "USD"}, 0, "report", "differs"),
        ({"cost": "2.10", "currency": "USD"}, 2_100_000, "report", "differs"),
        ({"cost": "5.00", "currency": "CNY"}, 700_000, "report", ""),
        ({"cost": "0.0000005", "currency": "USD"}, 1, "report", "differs"),
        ({"cost": "-3", "currency": "USD"}, 700_000, "rule", "negative"),
        ({"cost": "5", "currency": "EUR"}, 700_000, "rule", "no rate for its currency"),
        ({"cost": "5", "currency": None}, 700_000, "rule", "no rate for its currency"),
        ({"cost": "a lot", "currency": "USD"}, 700_000, "rule", "no amount"),
        ({"cost": "nan", "currency": "USD"}, 700_000, "rule", "no amount"),
        ({"cost": "1e30", "currency": "USD"}, 700_000, "rule", "absurdly large"),
        ({"cost": "7e-1", "currency": "USD"}, 700_000, "report", ""),
        ({"cost": "1e20000000", "currency": "USD"}, 700_000, "rule", "no amount"),
        ({"cost": "1e-20000000", "currency": "USD"}, 700_000, "rule", "no amount"),
        ({"cost": "7/10", "currency": "USD"}, 700_000, "rule", "no amount"),
    ],
)
def test_a_report_is_booked_exactly_and_what_is_no_cost_leaves_the_estimate(
    usage: Mapping[str, Any], micros: int, by: str, doubt: str
) -> None:
    cost = reported_cost(700_000, "USD", usage, RATES)
    assert (cost.micros, cost.by, cost.doubt) == (micros, by, doubt)


def test_a_cost_where_none_was_due_is_doubted() -> None:
    assert reported_cost(0, "USD", {"cost": "0.01", "currency": "USD"}, RATES).doubt == "differs"


def test_an_entry_says_what_it_rests_on() -> None:
    assert Cost(1, "rule").as_details() == {"by": "rule"}
    assert Cost(1, "report", "differs", "3 CNY").as_details() == {"by": "report", "reported": "3 CNY"}
