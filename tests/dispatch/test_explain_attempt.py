"""`manage.py explain --attempt`: a recorded round, routed again by the versions that it names."""

import json
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing.models import CostRuleVersion
from dispatch.models import Attempt, SelectionRound
from dispatch.routing.explain import explain
from dispatch.routing.rendering import rendered
from dispatch.services.dispatch_scan import scan
from health.models import SupplyHealth
from tests.factories import (
    NOW,
    AttemptFactory,
    CostRuleVersionFactory,
    JobFactory,
    PublicModelFactory,
    SelectionRoundFactory,
    SupplyBindingFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def attempt() -> Attempt:
    """What one scan made of a job with three candidates, one of them degraded."""
    model = PublicModelFactory(degradation="best_effort")
    for tier in ("exact", "fallback"):
        SupplyBindingFactory(public_model=model, tier=tier)
    SupplyBindingFactory(public_model=model, degraded=True)
    JobFactory(public_model=model)
    assert scan(lambda: NOW + timedelta(seconds=1)) == 1
    return Attempt.objects.get()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("explain", *arguments)
    return capsys.readouterr().out


def test_a_recorded_round_is_shown_and_comes_out_the_same(
    attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = attempt.selection_round.snapshot
    assert run(capsys, "--attempt", attempt.public_id) == rendered(explain(recorded))
    assert json.loads(run(capsys, "--attempt", attempt.public_id, "--json")) == recorded["decision"]


def test_it_comes_out_the_same_on_another_day_under_other_prices_and_other_health(
    attempt: Attempt, capsys: pytest.CaptureFixture[str]
) -> None:
    supply = attempt.supply
    CostRuleVersion.objects.filter(rule__supply=supply).update(effective_to=NOW + timedelta(hours=1))
    CostRuleVersionFactory(
        rule=supply.cost_rule,
        number=2,
        document={"mode": "per_second", "currency": "USD", "per_second": "99.00"},
        effective_from=NOW + timedelta(hours=1),
    )
    SupplyHealth.objects.update_or_create(supply=supply, defaults={"state": "disabled"})
    supply.state = "disabled"
    supply.save()
    assert "A supply was chosen" in run(capsys, "--attempt", attempt.public_id)


def doctored(attempt: Attempt, change: Any) -> Attempt:
    """An attempt whose round was stored otherwise than it was decided: rounds can't be changed later."""
    snapshot = deepcopy(attempt.selection_round.snapshot)
    change(snapshot)
    stored: Any = SelectionRoundFactory(snapshot=snapshot)
    other: Any = AttemptFactory(selection_round=stored, job=stored.job)
    return Attempt.objects.get(pk=other.pk)


def test_a_round_that_comes_out_differently_ends_with_1_and_says_where(attempt: Attempt) -> None:
    key = attempt.supply.slug
    other = doctored(attempt, lambda it: it["decision"]["candidates"][key].update(quote=1))
    with pytest.raises(
        CommandError, match=f"decision.candidates.{key}.quote: recorded 1, now 200000"
    ) as refused:
        call_command("explain", "--attempt", other.public_id)
    assert refused.value.returncode == 1


def test_a_round_whose_price_is_not_the_one_of_then_ends_with_1(attempt: Attempt) -> None:
    key = attempt.supply.slug
    other = doctored(attempt, lambda it: it["supplies"][key]["price"].__setitem__(1, "0" * 32))
    with pytest.raises(CommandError, match="is not the one that was routed by") as refused:
        call_command("explain", "--attempt", other.public_id)
    assert refused.value.returncode == 1


def test_an_unknown_attempt_ends_with_2() -> None:
    with pytest.raises(CommandError, match="There is no attempt att_nobody") as refused:
        call_command("explain", "--attempt", "att_nobody")
    assert refused.value.returncode == 2
    assert not SelectionRound.objects.exists()
