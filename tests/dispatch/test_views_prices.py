"""Cost rules in the console: a price that begins later, refused where it clashes, taken back."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from billing.models import CostRuleVersion
from billing.repository import price_in_force
from catalog.models import AuditEntry, PublicModel, Supply
from dispatch.models import Job
from dispatch.queries.prices import ExampleName
from dispatch.services.publish import review
from tests.console import SignIn
from tests.factories import SupplyFactory, succeeded_job
from tests.models_world import make_models_world

WEDNESDAY = datetime(2026, 12, 2, 9, 0, tzinfo=UTC)
MONDAY = datetime(2026, 12, 6, 16, 0, tzinfo=UTC)  # 00:00 in Shanghai
PAGE = "/console/cost-rules/kestrel-hd/"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The moment that the console takes for now; its one entry may be replaced."""
    moments = [WEDNESDAY]
    monkeypatch.setattr("django.utils.timezone.now", lambda: moments[0])
    return moments


@pytest.fixture
def zhao(sign_in: SignIn, settings: Settings, clock: list[datetime]) -> Client:
    settings.REPORTING_TIME_ZONE = "Asia/Shanghai"
    return sign_in("finance", username="zhao.q")


@pytest.fixture
def supply(clock: list[datetime], db: None) -> Supply:
    document = {"mode": "per_second", "currency": "USD", "per_second": "0.04"}
    return SupplyFactory(slug="kestrel-hd", price=document)


def reviewed(client: Client, **typed: str) -> object:
    form = {
        "mode": "per_second",
        "currency": "USD",
        "unit": "0.05",
        "free_on_failure": "1",
        "start": "monday",
        **typed,
    }
    return client.get(f"{PAGE}review/?{urlencode(form)}")


def confirm(client: Client, review_page: object) -> object:
    context = review_page.context  # type: ignore[attr-defined]
    start = context["start"]
    form = {
        "confirm": context["token"],
        "document": context["document_text"],
        "start": start.isoformat() if start else "now",
    }
    return client.post(f"{PAGE}schedule/", form, follow=True)


def amount_at(supply: Supply, at: datetime) -> str:
    version = price_in_force(supply, at)
    assert version is not None
    return str(version.document["per_second"])


def test_m1_next_monday_is_stored_as_the_instant_that_the_page_names_in_both_zones(
    zhao: Client, supply: Supply
) -> None:
    form = zhao.get(f"{PAGE}new/").content.decode()
    assert 'name="unit" inputmode="decimal" autocomplete="off" value="0.04"' in form
    assert "2026-12-07 00:00:00 (UTC+8)" in form
    page = reviewed(zhao)
    text = page.content.decode()
    assert "2026-12-07 00:00:00 (UTC+8)" in text
    assert "2026-12-06 16:00:00 (UTC)" in text
    assert "Asia/Shanghai" in text
    assert CostRuleVersion.objects.count() == 1  # reviewing stores nothing
    confirm(zhao, page)
    assert CostRuleVersion.objects.get(number=2).effective_from == MONDAY


def test_m3_the_page_says_when_it_starts_and_what_applies_until_then(
    zhao: Client, supply: Supply, clock: list[datetime]
) -> None:
    page = reviewed(zhao)
    text = confirm(zhao, page).content.decode()
    assert "Version 2 is scheduled: it starts at" in text
    assert "in 4 d 7 h" in text
    assert "Version 1 applies until then." in text
    assert (amount_at(supply, MONDAY - timedelta(seconds=1)), amount_at(supply, MONDAY)) == ("0.04", "0.05")
    clock[0] = MONDAY
    assert "Version 2 applies since" in zhao.get(PAGE).content.decode()
    states = [state for _version, state in zhao.get(PAGE).context["versions"]]
    assert states == ["in_force", "past"]
    assert AuditEntry.objects.get(action="schedule price").actor == "zhao.q"


def test_e11_the_same_form_twice_plans_one_version_and_another_document_is_not_confirmed(
    zhao: Client, supply: Supply
) -> None:
    page = reviewed(zhao)
    confirm(zhao, page)
    confirm(zhao, page)
    assert CostRuleVersion.objects.count() == 2
    form = {"confirm": page.context["token"], "document": '{"mode": "per_second"}', "start": "now"}
    assert zhao.post(f"{PAGE}schedule/", form).status_code == 403
    assert zhao.post(f"{PAGE}schedule/").status_code == 403


def test_m4_overlap_and_gap_are_refused_and_name_the_other_version(zhao: Client, supply: Supply) -> None:
    confirm(zhao, reviewed(zhao))
    overlap = reviewed(zhao, unit="0.06")
    assert overlap.status_code == 422
    assert (
        "It would overlap version 2, which begins at 2026-12-07 00:00:00 (UTC+8)." in overlap.content.decode()
    )
    assert 'value="0.06"' in overlap.content.decode()
    earlier = reviewed(zhao, unit="0.06", start="at", start_at="2026-12-05T12:00")
    assert earlier.status_code == 422
    CostRuleVersion.objects.filter(number=2).update(effective_to=MONDAY + timedelta(days=1))
    gap = reviewed(zhao, unit="0.06", start="at", start_at="2026-12-20T00:00")
    assert gap.status_code == 422
    assert "It would leave a gap: version 2 ends at 2026-12-08 00:00:00 (UTC+8)" in gap.content.decode()
    assert "No rule is in force from" in zhao.get(PAGE).content.decode()
    meets = reviewed(zhao, unit="0.06", start="at", start_at="2026-12-08T00:00")
    assert meets.status_code == 200


def test_two_who_plan_at_once_get_one_version_and_one_answer_that_names_it(
    zhao: Client, sign_in: SignIn, supply: Supply
) -> None:
    other = sign_in("finance", username="qian.l")
    mine, theirs = reviewed(zhao), reviewed(other, unit="0.07")
    confirm(other, theirs)
    late = confirm(zhao, mine)
    assert late.status_code == 409
    assert "It would overlap version 2" in late.content.decode()
    assert amount_at(supply, MONDAY) == "0.07"


def test_a_planned_version_is_cancelled_on_its_own_page_and_one_in_force_is_not(
    zhao: Client, supply: Supply
) -> None:
    confirm(zhao, reviewed(zhao))
    page = zhao.get(f"{PAGE}2/cancel/")
    assert "Version 1 goes on after that time." in page.content.decode()
    assert zhao.post(f"{PAGE}2/cancel/now/").status_code == 403
    zhao.post(f"{PAGE}2/cancel/now/", {"confirm": page.context["token"]})
    assert amount_at(supply, MONDAY) == "0.04"
    assert [state for _version, state in zhao.get(PAGE).context["versions"]] == ["cancelled", "in_force"]
    assert 'id="confirm-cancel"' not in zhao.get(f"{PAGE}1/cancel/").content.decode()


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"unit": "much"}, "unit"),
        ({"unit": "0.0400"}, "unit"),  # the same price, written otherwise
        ({"currency": "dollars"}, "currency"),
        ({"step_s": "0"}, "step_s"),
        ({"bracket-0-min": "4", "bracket-0-max": "x", "bracket-0-fixed": "6.00"}, "bracket-0-max"),
        ({"multiplier-0-when": "colour=red", "multiplier-0-factor": "2"}, "multiplier-0-when"),
        ({"start": "at", "start_at": "2026-12-01T00:00"}, "start_at"),  # past
    ],
)
def test_what_cannot_be_is_refused_at_its_field_and_kept_as_it_was_typed(
    zhao: Client, supply: Supply, typed: dict[str, str], field: str
) -> None:
    response = reviewed(zhao, **typed)
    text = response.content.decode()
    assert response.status_code == 422
    assert f'<a href="#{field}">' in text
    assert f'id="{field}"' in text
    assert "Error: New price" in text.partition("</title>")[0]
    assert all(f'value="{value}"' in text for value in typed.values())


def test_a_price_that_is_kept_for_the_books_alone_can_be_replaced(
    zhao: Client, clock: list[datetime]
) -> None:
    SupplyFactory(slug="kestrel-hd", price={"mode": "per_token", "currency": "USD"})
    assert reviewed(zhao).status_code == 200  # type: ignore[attr-defined]


def test_another_row_keeps_what_is_typed_and_reviews_nothing(zhao: Client, supply: Supply) -> None:
    page = reviewed(zhao, **{"do": "bracket", "unit": "0.3", "bracket-2-fixed": "6.00", "start": "now"})
    texts = page.context["texts"]  # type: ignore[attr-defined]
    assert texts.brackets == (("", "", ""), ("", "", ""), ("", "", "6.00"), ("", "", ""))
    assert texts.plain["unit"] == "0.3"
    assert page.context["typed"]["start"] == "now"  # type: ignore[attr-defined]


def test_whole_prices_and_factors_are_read_as_they_are_typed(zhao: Client, supply: Supply) -> None:
    page = reviewed(
        zhao,
        **{
            "unit": "",
            "start": "now",
            "bracket-0-min": "4",
            "bracket-0-max": "15",
            "bracket-0-fixed": "6.00",
            "multiplier-0-when": "resolution=1080p, audio=true",
            "multiplier-0-factor": "1.5",
        },
    )
    confirm(zhao, page)
    version = price_in_force(supply, WEDNESDAY)
    assert version is not None
    assert version.document == {
        "mode": "per_second",
        "currency": "USD",
        "brackets": [{"min_s": 4, "max_s": 15, "fixed": "6.00"}],
        "multipliers": [{"when": {"resolution": "1080p", "audio": True}, "factor": "1.5"}],
    }


def test_the_review_prices_examples_and_the_last_week_anew_and_m2_changes_no_past_cost(zhao: Client) -> None:
    make_models_world()
    supply = Supply.objects.get(slug="kestrel-hd")
    job = succeeded_job(supply=supply, created_at=WEDNESDAY - timedelta(days=1))
    page = reviewed(zhao, unit="0.0530", start="now")
    examples = {each.name: each for each in page.context["examples"]}
    told = examples[ExampleName("vid-hd-5s", 1)]
    assert "<td>$0.0424</td><td><strong>$0.053</strong></td>" in page.content.decode()
    assert (told.before_micros, told.after_micros) == (212_000, 265_000)
    again = page.context["recosted"]
    seconds = job.request["duration_s"]
    assert (again.attempts, again.delivered) == (1, 1)
    assert (again.before_micros, again.after_micros) == (42_400 * seconds, 53_000 * seconds)
    confirm(zhao, page)
    assert Job.objects.get(pk=job.pk).provider_cost_micros == 200_000
    attempt = job.attempts.get()
    assert (attempt.cost_micros, attempt.cost_rule_version.number) == (200_000, 1)
    model = PublicModel.objects.get(slug="vid-hd-5s")
    assert next(gate for gate in review(model, WEDNESDAY) if gate.number == 3).passed
    lines = {line.supply.slug: line for line in zhao.get("/console/cost-rules/").context["lines"]}
    assert lines["kestrel-hd"].typical_micros == 265_000
