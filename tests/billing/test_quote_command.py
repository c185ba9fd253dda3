"""`manage.py quote`: a price for a request, by the versions in force at a moment."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from billing.models import CurrencyRateVersion
from tests.factories import (
    NOW,
    CostRuleVersionFactory,
    PublicModelFactory,
    SupplyBindingFactory,
    SupplyFactory,
)

pytestmark = pytest.mark.django_db

FIVE_SECONDS = {"mode": "text_to_video", "duration_s": 5}


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(FIVE_SECONDS))
    return path


def quoted(capsys: pytest.CaptureFixture[str], name: str, file: Path, *more: str) -> list[dict[str, Any]]:
    call_command("quote", name, str(file), "--json", f"--at={NOW.isoformat()}", *more)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def bracket(**changes: Any) -> dict[str, Any]:
    return {
        "mode": "per_second",
        "currency": "CNY",
        "brackets": [{"min_s": 4, "max_s": 15, "fixed": "6.00"}],
    } | changes


def rate(value: str = "0.1391", days_ago: int = 1) -> CurrencyRateVersion:
    return CurrencyRateVersion.objects.create(
        from_currency="CNY", to_currency="USD", rate=value, effective_from=NOW - timedelta(days=days_ago)
    )


def test_every_supply_of_a_model_is_quoted_once_and_names_its_versions(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model: Any = PublicModelFactory()
    dollars: Any = SupplyFactory(
        slug="a", price={"mode": "per_second", "currency": "USD", "per_second": "0.30"}
    )
    yuan = SupplyFactory(slug="b", price=bracket())
    for supply, tier in ((dollars, "exact"), (dollars, "fallback"), (yuan, "fallback")):
        SupplyBindingFactory(public_model=model, supply=supply, tier=tier)
    known = rate()
    for value, days_ago in (("0.2", 2), ("0.3", -1)):
        rate(value, days_ago)
    first, second = quoted(capsys, model.slug, request_file)
    assert (first["supply"], first["micros"], first["currency"]) == ("a", 1_500_000, "USD")
    assert first["cost_rule_version"] == dollars.cost_rule.versions.get().public_id
    assert (second["micros"], second["native_micros"], second["native_currency"]) == (
        834_600,
        6_000_000,
        "CNY",
    )
    assert second["rate_version"] == known.public_id


def test_the_version_in_force_at_the_moment_is_quoted(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    supply: Any = SupplyFactory()
    old = supply.cost_rule.versions.get()
    old.effective_to = NOW
    old.save()
    CostRuleVersionFactory(
        rule=supply.cost_rule,
        number=2,
        document={"mode": "per_second", "currency": "USD", "per_second": "0.08"},
        effective_from=NOW,
    )
    assert quoted(capsys, supply.slug, request_file)[0]["micros"] == 400_000
    call_command(
        "quote", supply.slug, str(request_file), "--json", f"--at={(NOW - timedelta(seconds=1)).isoformat()}"
    )
    assert json.loads(capsys.readouterr().out)[0]["micros"] == 200_000


def test_what_has_no_quote_says_why(request_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_rule: Any = SupplyFactory(price=False)
    without_rate: Any = SupplyFactory(price=bracket())
    outside: Any = SupplyFactory(
        price=bracket(currency="USD", brackets=[{"min_s": 6, "max_s": 9, "fixed": "1"}])
    )
    why = [
        quoted(capsys, it.slug, request_file)[0]["missing"] for it in (without_rule, without_rate, outside)
    ]
    assert why == [
        "no cost rule is in force",
        "no rate from CNY to USD",
        "the cost rule has no price for this request",
    ]


def test_people_read_one_line_a_supply(request_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    supply: Any = SupplyFactory(slug="b", price=bracket())
    known = rate()
    call_command("quote", "b", str(request_file), f"--at={NOW.isoformat()}")
    version = supply.cost_rule.versions.get().public_id
    assert capsys.readouterr().out == f"b  0.8346 USD (6.00 CNY by {known.public_id})  by {version}\n"


@pytest.mark.parametrize(
    ("request_document", "more", "words"),
    [
        ({"mode": "fly"}, (), "mode: 'fly' must be one of"),
        ({"mode": "text_to_video", "prompt": "x"}, (), "prompt: no such key"),
        ([], (), "must be an object"),
        (FIVE_SECONDS, ("--at=yesterday",), "is not a time"),
        (FIVE_SECONDS, ("--at=2026-06-01T12:00:00",), "has no time zone"),
    ],
)
def test_a_wrong_request_ends_with_2_and_says_where(
    request_file: Path, request_document: Any, more: tuple[str, ...], words: str
) -> None:
    supply: Any = SupplyFactory()
    request_file.write_text(json.dumps(request_document))
    with pytest.raises(CommandError, match=words) as refused:
        call_command("quote", supply.slug, str(request_file), *more)
    assert refused.value.returncode == 2


def test_an_unknown_name_ends_with_2(request_file: Path) -> None:
    with pytest.raises(CommandError, match="no supply and no public model 'nobody'"):
        call_command("quote", "nobody", str(request_file))
