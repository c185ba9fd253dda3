"""Who loses its last supply, and what a maintenance needs to start."""

from datetime import UTC, datetime, timedelta

import pytest

from dispatch.maintenance import Wanted, faults_of
from dispatch.redundancy import Bound, losses

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_tier_keeps_what_is_bound_elsewhere_and_loses_its_last_when_nobody_usable_is_left() -> None:
    bound = [
        Bound("hd", "exact", "kestrel", True),
        Bound("hd", "exact", "osprey", True),
        Bound("hd", "exact", "heron", False),
        Bound("hd", "fallback", "lite", True),
        Bound("std", "exact", "kestrel", True),
        Bound("std", "exact", "heron", False),
        Bound("other", "exact", "wren", True),
    ]
    found = [
        (each.key, each.bound, each.kept, each.usable_kept, each.is_last)
        for each in losses(bound, {"kestrel"})
    ]
    assert found == [("std:exact", 2, 1, 0, True), ("hd:exact", 3, 2, 1, False)]
    assert losses(bound, set()) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"until_at": None}, {"until": "no_time"}),
        ({"until_at": NOW}, {"until": "past"}),
        ({"until_at": NOW + timedelta(days=91)}, {"until": "far"}),
        ({"mode": "explode"}, {"mode": "choose"}),
        ({"at_end": ""}, {"at_end": "choose"}),
        ({"reason": "  "}, {"reason": "no_reason"}),
        ({}, {}),
    ],
)
def test_a_maintenance_needs_a_mode_an_end_in_the_future_what_then_and_why(
    changes: dict[str, object], fault: dict[str, str]
) -> None:
    values = {"mode": "drain", "until_at": NOW + HOUR, "at_end": "probe", "reason": "keys"} | changes
    assert faults_of(Wanted(**values), (), (), NOW) == fault  # type: ignore[arg-type]


def test_c1_every_tier_that_loses_its_last_supply_is_ticked_by_name() -> None:
    wanted = Wanted("drain", NOW + HOUR, "probe", "keys")
    assert faults_of(wanted, ["hd:exact", "std:exact"], ["hd:exact"], NOW) == {"losses": "not_ticked"}
    assert faults_of(wanted, ["hd:exact"], ["hd:exact", "gone:exact"], NOW) == {}


def test_at_the_peak_the_free_slots_of_what_stays_stand_against_those_taken_on_what_goes() -> None:
    (loss,) = losses(
        [
            Bound("hd", "exact", "kestrel", True, slots=8, peak=7),
            Bound("hd", "exact", "osprey", True, slots=8, peak=3),
            Bound("hd", "exact", "heron", False, slots=8, peak=0),
            Bound("hd", "exact", "wren", True, slots=2, peak=4),
        ],
        {"kestrel"},
    )
    assert (loss.taken_at_peak, loss.free_at_peak, loss.is_tight) == (7, 5, True)
