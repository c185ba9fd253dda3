"""What one provider's refusal means for the other supplies of a public model."""

from datetime import timedelta

from dispatch.refusals import all_open_at, at_supplies
from dispatch.routing.types import Refusal
from health.refusals import PROBE_LOOK_AGAIN, RefusalState, Standing
from tests.factories import NOW

LATER, LATEST = NOW + timedelta(minutes=15), NOW + timedelta(hours=1)
FROZEN = Standing(RefusalState.FROZEN)
DUE = Standing(RefusalState.COOLDOWN, NOW)
SUPPLIES = ("a", "b", "c")


def cooling(until: object = LATER) -> Standing:
    return Standing(RefusalState.COOLDOWN, until)  # type: ignore[arg-type]


def test_a_refusal_closes_its_own_provider_only() -> None:
    assert at_supplies({"a": cooling()}, SUPPLIES, False, NOW) == {"a": Refusal("cooldown", LATER)}


def test_a_model_that_closes_keeps_the_content_from_everybody() -> None:
    told = at_supplies({"a": cooling(), "b": cooling(LATEST)}, SUPPLIES, True, NOW)
    assert told == {
        "a": Refusal("cooldown", LATER),
        "b": Refusal("cooldown", LATEST),
        "c": Refusal("cooldown", LATEST),
    }


def test_when_the_probe_is_due_only_who_refused_may_be_asked() -> None:
    told = at_supplies({"a": DUE}, SUPPLIES, True, NOW)
    assert told["a"] == Refusal("cooldown", NOW)
    assert told["b"] == told["c"] == Refusal("cooldown", NOW + PROBE_LOOK_AGAIN)


def test_one_frozen_record_freezes_a_model_that_closes() -> None:
    assert at_supplies({"a": DUE, "b": FROZEN}, SUPPLIES, True, NOW)["c"] == Refusal("frozen")


def test_content_that_nobody_refused_is_open_everywhere() -> None:
    assert at_supplies({}, SUPPLIES, True, NOW) == {}


def test_all_are_open_when_the_last_cooldown_ends_and_never_while_one_is_frozen() -> None:
    assert all_open_at([cooling(LATEST), cooling(), DUE]) == LATEST
    assert all_open_at([cooling(), FROZEN]) is None
