"""A supply of which every second attempt fails, for a day (fault 43), and the two rules that open (S31)."""

import random
from datetime import timedelta

import pytest

from catalog.models import Supply
from health.circuit import Subject, effective_capacity
from health.models import HealthEvent, SupplyHealth
from health.services.replay_recorded import replay_recorded
from tests.factories import NOW, SupplyFactory
from tests.health.evidence import begin_recoveries, fail, win

pytestmark = pytest.mark.django_db
SLOTS = 10


@pytest.fixture
def supply() -> Supply:
    return SupplyFactory(concurrency=SLOTS)


def slots_of(supply: Supply) -> int:
    row = SupplyHealth.objects.filter(pk=supply.pk).first() or SupplyHealth(supply=supply)
    return effective_capacity(row.state, row.recovery_successes, SLOTS)


def test_at_half_errors_a_circuit_lets_ever_less_through_and_its_story_is_replayed(
    supply: Supply,
) -> None:
    """Attempts of ten seconds, as many at once as the circuit allows."""
    dice, sent_by_hour = random.Random(43), [0, 0, 0]
    for second in range(0, 3 * 3600, 10):
        now = NOW + timedelta(seconds=second)
        begin_recoveries(now, lambda _: True)
        for _ in range(slots_of(supply)):
            if slots_of(supply) == 0:
                break  # opened by one that began with it: nothing new is sent
            sent_by_hour[second // 3600] += 1
            (win if dice.random() < 0.5 else fail)(supply, at=now)
    events = HealthEvent.objects.filter(subject="supply", subject_id=supply.pk).order_by("pk")
    assert not [step.problem for step in replay_recorded(Subject.SUPPLY, supply.pk) if step.problem]
    openings = [event for event in events if event.to_state == "circuit_open"]
    assert len(openings) > 10
    waits = [(event.cooldown_until - event.at).total_seconds() for event in openings]  # type: ignore[operator]
    assert waits[:5] == [30, 60, 120, 300, 600]
    assert max(sent_by_hour) < 3600 / 10 * SLOTS / 10, "a tenth of what it could take is not reached"
    assert [event.epoch for event in openings] == list(range(1, len(openings) + 1))


def test_failures_with_successes_between_open_nothing(supply: Supply) -> None:
    """S31: three failures, never two in a row, and too few for a rate."""
    fail(supply), win(supply, times=5), fail(supply), win(supply), fail(supply)
    assert not HealthEvent.objects.exists()


def test_the_event_names_the_rule_that_opened(supply: Supply) -> None:
    fail(supply, times=5)
    other = SupplyFactory()
    for second in range(11):
        at = NOW + timedelta(seconds=second)
        if second < 10:
            win(other, at=at)
        fail(other, at=at)
    opened = HealthEvent.objects.filter(to_state="circuit_open").order_by("pk")
    assert [(event.subject_id, event.cause) for event in opened] == [
        (supply.pk, "repeated_failures"),
        (other.pk, "failure_rate"),
    ]
