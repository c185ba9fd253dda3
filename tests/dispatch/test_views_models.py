"""Public models: edit, review, save, publish, compare; tests name their item of the console's checklist."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog.models import AuditEntry, Channel, DispatchPolicy, ModelRevision, PublicModel, SupplyBinding
from dispatch.models import FormReceipt, RefusedMeanwhile, WorkingCopy
from dispatch.services.keep_house import keep_house
from dispatch.services.save_model import save_model
from health.models import Alert
from tests.console import SignIn
from tests.factories import (
    PublicModelFactory,
    SupplyBindingFactory,
    SupplyFactory,
    SupplyHealthFactory,
    api_key,
)
from tests.models_world import BASE, SLUG, WANG, ModelsWorld, make_models_world, model_facts

KEEP, REVIEW, SAVE = f"{BASE}edit/keep/", f"{BASE}review/", f"{BASE}save/"
PUBLISH, OPEN = f"{BASE}publish/", f"{BASE}publish/now/"
OSPREY = "osprey-pro@exact:priority"


@pytest.fixture
def world(db: None) -> ModelsWorld:
    return make_models_world()


@pytest.fixture
def li(sign_in: SignIn, world: ModelsWorld) -> Client:
    """Edits and publishes."""
    return sign_in("operator", "publisher")


def keep(client: Client, base: int = 2, do: str = "review", **typed: str) -> Any:
    return client.post(KEEP, {"base": str(base), "do": do, **typed})


def edited(client: Client, **typed: str) -> None:
    """With a working copy that is ready for review."""
    response = keep(client, **(typed or {OSPREY: "950000"}))
    assert (response.status_code, response["Location"]) == (302, REVIEW)


def token(client: Client, address: str) -> str:
    return str(client.get(address).context["token"])


def save(client: Client, note: str = "more for Osprey") -> Any:
    return client.post(SAVE, {"confirm": token(client, REVIEW), "note": note})


def saved(client: Client, **typed: str) -> PublicModel:
    edited(client, **typed)
    assert save(client)["Location"] == PUBLISH
    return PublicModel.objects.get(slug=SLUG)


def wang_saves(first: int = 920_000) -> PublicModel:
    """The second operator."""
    stored = PublicModel.objects.get(slug=SLUG)
    return save_model(
        model_facts(first),
        expected_revision=stored.revision,
        actor=WANG,
        now=timezone.now(),
        note="mine first",
    )


def priorities() -> dict[str, int]:
    rows = SupplyBinding.objects.filter(public_model__slug=SLUG)
    return dict(rows.values_list("supply__slug", "priority"))


# ---- the list and the model


def test_the_list_says_how_each_model_stands_and_is_supplied(li: Client) -> None:
    text = li.get("/console/models/").content.decode()
    assert "Saved, not published" in text
    assert "One supply only: nothing to switch to" in text
    line = next(each for each in li.get("/console/models/").context["lines"] if each.model.slug == SLUG)
    assert [(each.tier, each.usable, each.bound) for each in line.supplied] == [
        ("exact", 2, 3),
        ("fallback", 2, 2),
        ("degraded", 1, 1),
    ]
    assert (line.state, line.waiting, line.published_by) == ("published", 1, "wang.l")


def test_g16_without_any_model_the_list_says_what_it_is_for(sign_in: SignIn) -> None:
    assert "No public model yet" in sign_in("viewer").get("/console/models/").content.decode()
    assert (
        "There is none to ask" in sign_in("viewer", username="w").get("/console/simulator/").content.decode()
    )


def test_p1_the_list_asks_as_many_questions_for_many_models_as_for_two(li: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            li.get("/console/models/")
        return len(asked)

    li.get("/console/models/")
    few = queries()
    for _ in range(5):
        SupplyBindingFactory(public_model=PublicModelFactory())
    assert queries() == few


def test_a_model_shows_its_order_beside_the_numbers_and_the_worse_health_with_its_origin(li: Client) -> None:
    response = li.get(BASE)
    tiers = {tier.tier: tier.bindings for tier in response.context["tiers"]}
    assert [(each.facts.supply, each.placed.position) for each in tiers["exact"]] == [
        ("kestrel-hd", 1),
        ("osprey-pro", 2),
        ("heron-v3", 3),
    ]
    assert (tiers["exact"][2].circuit.state, tiers["exact"][2].circuit.place) == ("circuit_open", "channel")
    text = response.content.decode()
    assert "from channel, 12 min" in text
    assert "Recovering 50 %" in text
    assert "6 in use, 1 unknown, 1 free of 8 slots" in text
    assert "In production, with 2 exact supplies that can take work." in text
    assert "within one, the higher priority number is tried first" in text


def test_a_supply_without_capability_or_price_is_shown_and_never_placed(
    li: Client, world: ModelsWorld
) -> None:
    bare = SupplyFactory(slug="bare", price=False)
    bare.capability_version = None
    bare.save()
    SupplyBindingFactory(public_model=world.model, supply=bare)
    SupplyBindingFactory(public_model=world.model, supply=SupplyFactory(slug="unpriced", price=False))
    response = li.get(BASE)
    exact = {each.facts.supply: each for each in response.context["tiers"][0].bindings}
    assert exact["bare"].placed is None
    assert exact["unpriced"].placed.position is None
    assert "none in force" in response.content.decode()
    assert "no price" in response.content.decode()


# ---- editing


def test_e1_a_priority_is_a_whole_number_with_or_without_separators(li: Client) -> None:
    for typed in ("0", "1000000", "1,000,000", " 950 000 "):
        edited(li, **{OSPREY: typed})
        digits = "".join(filter(str.isdigit, typed))
        assert WorkingCopy.objects.get().typed == {OSPREY: digits}


def test_e1_a_bad_number_is_refused_with_a_summary_and_stays_as_typed(li: Client) -> None:
    for typed in ("-1", "1000001", "1.5", "1e6", "", "1,5e6", "10,00"):
        response = keep(li, **{OSPREY: typed})
        text = response.content.decode()
        assert response.status_code == 422
        assert "<title>Error: Edit vid-hd-5s" in text
        assert f'value="{typed}" aria-label="Priority of osprey-pro"' in text
        assert 'aria-describedby="priority-help fault-osprey-pro@exact" aria-invalid="true"' in text
        assert f'<a href="#{OSPREY.replace("@", "%40").replace(":", "%3A")}">' in text
        assert ("You entered" in text) == bool(typed)
        assert WorkingCopy.objects.get().typed == {OSPREY: typed}
        assert priorities()["osprey-pro"] == 700_000


def test_e3_moving_up_changes_only_that_row_and_says_its_place(li: Client) -> None:
    response = keep(li, do="up osprey-pro@exact")
    assert response["Location"] == f"{BASE}edit/?focus=up-osprey-pro@exact"
    (copy,) = WorkingCopy.objects.all()
    assert list(copy.typed) == [OSPREY]
    assert 910_000 < int(copy.typed[OSPREY]) <= 1_000_000
    page = li.post(
        KEEP, {"base": "2", "do": "down osprey-pro@exact", **copy.typed}, headers={"HX-Request": "true"}
    )
    assert "osprey-pro is now number 2 of 3." in page.content.decode()
    assert 400_000 < int(WorkingCopy.objects.get().typed[OSPREY]) < 910_000


def test_e4_everything_can_be_done_by_a_plain_button(li: Client) -> None:
    keep(li, do="remove heron-v3@exact")
    keep(li, **{"heron-v3@exact:bound": ""}, do="add ", **{"add supply": "heron-v3", "add tier": "degraded"})
    typed = WorkingCopy.objects.get().typed
    assert typed["heron-v3@exact:bound"] == ""
    assert typed["heron-v3@degraded:rule"] == "933-to-900"
    rows = [row.key for tier in li.get(f"{BASE}edit/").context["tiers"] for row in tier.rows]
    assert "heron-v3@degraded" in rows
    keep(li, do="renumber ", row="heron-v3@degraded", **typed)
    assert WorkingCopy.objects.get().typed["kestrel-hd@exact:priority"] == "20000"
    li.post(f"{BASE}edit/discard/")
    assert not WorkingCopy.objects.exists()


def test_a_degraded_binding_needs_its_rule_and_no_supply_stands_twice_in_a_tier(li: Client) -> None:
    response = keep(li, **{"wren-lite@fallback:tier": "degraded", "osprey-pro@exact:tier": "fallback"})
    assert [fault.at for fault in response.context["draft"].faults] == ["wren-lite@fallback:rule"]
    twice = {"row": "wren-lite@exact", "wren-lite@exact:bound": "on", "wren-lite@exact:tier": "fallback"}
    response = keep(li, **twice)
    assert "bound in this tier already" in response.content.decode()


def test_policy_parameters_are_typed_with_their_units_and_checked_one_by_one(li: Client) -> None:
    response = keep(
        li,
        **{
            "policy:max_cost_micros": "12.1234567",
            "policy:max_attempts": "3",
            "policy:success_band": "x",
            "policy:dispatch_deadline_s": "0",
        },
    )
    assert {fault.at for fault in response.context["draft"].faults} == {
        "policy:max_cost_micros",
        "policy:max_attempts",
        "policy:success_band",
        "policy:dispatch_deadline_s",
    }
    model = saved(li, **{"policy:max_cost_micros": "12.50", "policy:spill_when_saturated": "on"})
    assert model.policy.parameters["max_cost_micros"] == 12_500_000
    assert model.policy.parameters["spill_when_saturated"] is True
    assert (model.policy.slug, model.policy.version) == ("by-hand", 2)
    assert PublicModel.objects.get(slug="vid-std").policy.version == 1


def test_another_policy_says_that_priorities_have_no_effect(li: Client) -> None:
    page = keep(li, do="keep", **{"policy:order": "cost_first"})
    text = li.get(page["Location"]).content.decode()
    assert "The policy of this model does not read priorities: they have no effect." in text
    assert 'data-move="up"' not in text


def test_a_number_written_otherwise_is_no_change(li: Client) -> None:
    assert keep(li, do="keep", **{OSPREY: "700,000", "policy:max_cost_micros": "30"}).status_code == 302
    assert not WorkingCopy.objects.exists()


def test_e13_a_working_copy_is_private_and_is_offered_again(li: Client, sign_in: SignIn) -> None:
    edited(li)
    assert "You have 1 unsaved change from" in li.get(BASE).content.decode()
    assert "1 unsaved change" in li.get(f"{BASE}edit/").content.decode()
    wang = sign_in("operator", username="wang.l")
    assert "unsaved change" not in wang.get(BASE).content.decode()
    assert "li.m is editing this model too" in wang.get(f"{BASE}edit/").content.decode()
    assert priorities()["osprey-pro"] == 700_000
    assert PublicModel.objects.get(slug=SLUG).published


def test_e14_ties_an_unserved_tier_and_an_all_zero_list_each_show_their_notice(li: Client) -> None:
    SupplyHealthFactory(supply=SupplyBinding.objects.get(tier="degraded").supply, state="disabled")
    zero = {f"{supply}@fallback:priority": "0" for supply in ("wren-lite", "finch-one")}
    keep(li, do="keep", **{OSPREY: "910000", **zero})
    text = li.get(f"{BASE}edit/").content.decode()
    assert "Same priority 910,000 in this tier: " in text
    assert "Every priority in this tier is 0" in text
    assert "Nobody in this tier can take work now." in text
    keep(li, do="keep", **{OSPREY: "909999"})
    assert "No number fits between kestrel-hd, osprey-pro" in li.get(f"{BASE}edit/").content.decode()


def test_i3_switching_the_language_keeps_the_working_copy(li: Client) -> None:
    edited(li)
    li.post("/console/language/", {"language": "zh-hans", "next": f"{BASE}edit/"})
    assert "1 项未保存的改动" in li.get(f"{BASE}edit/").content.decode()


# ---- two at once


def test_e5_a_stale_save_gets_the_three_way_view(li: Client) -> None:
    edited(li, **{OSPREY: "950000", "kestrel-hd@exact:priority": "930000"})
    form = {"confirm": token(li, REVIEW), "note": "mine"}
    wang_saves(920_000)
    response = li.post(SAVE, form)
    text = response.content.decode()
    assert response.status_code == 409
    assert "<strong>wang.l</strong> saved revision 3" in text
    assert [(each.base, each.theirs, each.mine) for each in response.context["clashes"]] == [
        ("910,000", "920,000", "930,000")
    ]
    assert [each.after for each in response.context["only_mine"]] == ["950,000"]
    assert priorities()["kestrel-hd"] == 920_000
    assert len(WorkingCopy.objects.get().typed) == 2


def test_e6_repeating_a_stale_save_never_wins(li: Client) -> None:
    edited(li)
    form = {"confirm": token(li, REVIEW), "note": "mine"}
    wang_saves()
    assert [li.post(SAVE, form).status_code for _ in range(3)] == [409, 409, 409]
    assert li.get(REVIEW).status_code == 409
    assert PublicModel.objects.get(slug=SLUG).revision == 3
    assert priorities()["osprey-pro"] == 700_000


def test_what_both_changed_is_chosen_and_what_one_changed_is_merged(li: Client) -> None:
    edited(li, **{OSPREY: "950000", "kestrel-hd@exact:priority": "930000"})
    wang_saves(920_000)
    field = "choose kestrel-hd@exact:priority"
    assert li.post(f"{BASE}edit/merge/").status_code == 409
    assert li.post(f"{BASE}edit/merge/", {field: "theirs"})["Location"] == REVIEW
    copy = WorkingCopy.objects.get()
    assert (copy.base_revision, copy.typed) == (3, {OSPREY: "950000"})
    assert save(li)["Location"] == PUBLISH
    assert (priorities()["kestrel-hd"], priorities()["osprey-pro"]) == (920_000, 950_000)


def test_a_binding_that_one_took_out_and_the_other_changed_is_asked_about(li: Client) -> None:
    edited(li, **{"kestrel-hd@exact:bound": ""})
    wang_saves(920_000)
    (clash,) = li.get(REVIEW).context["clashes"]
    assert (clash.field, clash.theirs, clash.mine) == ("kestrel-hd@exact:bound", "yes", "no")
    li.post(f"{BASE}edit/merge/", {f"choose {clash.field}": "mine"})
    assert save(li)["Location"] == PUBLISH
    assert "kestrel-hd" not in priorities()


# ---- review and save


def test_a_review_states_the_price_and_checks_the_gates_in_advance(li: Client) -> None:
    edited(li, **{f"{supply}@exact:enabled": "" for supply in ("kestrel-hd", "osprey-pro", "heron-v3")})
    response = li.get(REVIEW)
    text = response.content.decode()
    assert "Saving takes vid-hd-5s out of production." in text
    assert "1 job arrived in the last hour," in text
    assert "1 is waiting now." in text
    assert "You would not be able to publish this." in text
    assert [gate.number for gate in response.context["failed"]] == [1]
    assert response.context["gates"][0].number == 1
    assert PublicModel.objects.get(slug=SLUG).published
    assert not AuditEntry.objects.filter(actor="preflight").exists()


def test_e7_the_review_shows_the_order_before_and_after(li: Client) -> None:
    edited(li)
    ((tier, rows),) = li.get(REVIEW).context["orders"]
    assert tier == "exact"
    assert {row.supply: (row.before, row.after) for row in rows} == {
        "osprey-pro": (2, 1),
        "kestrel-hd": (1, 2),
        "heron-v3": (3, 3),
    }


def test_a_save_needs_its_one_line_of_why(li: Client) -> None:
    edited(li)
    response = save(li, note="  ")
    assert response.status_code == 422
    assert "Say in one line why. Nothing was saved." in response.content.decode()
    assert PublicModel.objects.get(slug=SLUG).revision == 2


def test_e8_after_a_save_the_page_shows_what_was_read_back(li: Client) -> None:
    edited(li)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION rounded() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.priority = NEW.priority / 100000 * 100000; RETURN NEW; END';"
            "CREATE TRIGGER rounding BEFORE INSERT OR UPDATE ON catalog_supplybinding"
            " FOR EACH ROW EXECUTE FUNCTION rounded()"
        )
    text = li.post(SAVE, {"confirm": token(li, REVIEW), "note": "x"}, follow=True).content.decode()
    assert "Saved as revision 3 at" in text
    assert "Last published: 2." in text
    assert "900,000" in text
    assert "950,000" not in text


def test_e9_a_save_takes_the_model_off_air_and_every_page_says_so_until_it_is_published(li: Client) -> None:
    model = saved(li)
    assert (model.enabled, model.published, model.revision, model.published_revision) == (False, False, 3, 2)
    _key, secret = api_key()
    customer = Client(headers={"authorization": f"Bearer {secret}"})
    body = {"model": SLUG, "prompt": "x", "duration_s": 5}
    refused = customer.post("/api/v1/jobs/", body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "model_not_published")
    text = li.get("/console/jobs/").content.decode()
    assert 'data-off-air="vid-hd-5s"' in text
    assert "By li.m, since" in text
    assert "1 job was refused meanwhile." in text
    assert (
        'data-off-air="vid-hd-5s"'
        in li.get("/console/strips/", headers={"HX-Request": "true"}).content.decode()
    )
    done = li.post(OPEN, {"confirm": token(li, PUBLISH)}, follow=True)
    assert "Published revision 3 at" in done.content.decode()
    assert "1 job refused." in done.content.decode()
    model.refresh_from_db()
    assert (model.enabled, model.published, model.published_revision) == (True, True, 3)
    assert 'data-off-air="vid-hd-5s"' not in li.get("/console/jobs/").content.decode()
    assert not RefusedMeanwhile.objects.exists()


def test_saved_and_not_published_for_five_minutes_warns_once(li: Client) -> None:
    saved(li)
    own = Alert.objects.filter(subject=f"model:{SLUG}")
    keep_house(timezone.now() + timedelta(minutes=4))
    assert not own.exists()
    for minutes in (5, 6):
        keep_house(timezone.now() + timedelta(minutes=minutes, seconds=1))
    assert own.get().code == "model_not_published"
    li.post(OPEN, {"confirm": token(li, PUBLISH)})
    keep_house(timezone.now() + timedelta(minutes=7, seconds=1))
    assert own.get().resolved_at is not None


# ---- publishing


def test_e10_a_failing_gate_keeps_it_closed_and_stands_first_with_a_way_back(li: Client) -> None:
    saved(li)
    Channel.objects.update(credential="")
    response = li.post(OPEN, {"confirm": token(li, PUBLISH)})
    text = response.content.decode()
    assert response.status_code == 422
    assert "Nothing was published: 1 gate fails" in text
    gate = response.context["gates"][0]
    assert (gate.number, gate.passed, gate.measured) == (1, False, "0 can serve")
    assert "Go back to revision 2" in text
    assert not PublicModel.objects.get(slug=SLUG).published


def test_e11_a_form_sent_twice_has_one_effect_and_one_answer(li: Client) -> None:
    edited(li)
    form = {"confirm": token(li, REVIEW), "note": "twice"}
    assert [li.post(SAVE, form)["Location"] for _ in range(2)] == [PUBLISH, PUBLISH]
    assert ModelRevision.objects.filter(public_model__slug=SLUG).count() == 3
    form = {"confirm": token(li, PUBLISH)}
    assert [li.post(OPEN, form)["Location"] for _ in range(2)] == [BASE, BASE]
    assert AuditEntry.objects.filter(actor="li.m", action="publish model").count() == 1
    assert FormReceipt.objects.count() == 2


def test_e12_without_the_token_of_its_page_nothing_is_confirmed(li: Client) -> None:
    edited(li)
    for address in (SAVE, OPEN, f"{BASE}withdraw/now/", f"{BASE}revisions/1/revert/"):
        other = token(li, PUBLISH if "withdraw" in address else f"{BASE}withdraw/")
        for form in ({}, {"confirm": "made up"}, {"confirm": other, "note": "x", "why": "x"}):
            assert li.post(address, form).status_code == 403
    assert PublicModel.objects.get(slug=SLUG).published


def test_e15_an_earlier_revision_comes_back_as_a_new_one_through_the_gates(li: Client) -> None:
    page = f"{BASE}revisions/1..2/"
    form = {"confirm": token(li, page)}
    assert li.post(f"{BASE}revisions/1/revert/", form)["Location"] == BASE
    model = PublicModel.objects.get(slug=SLUG)
    assert (model.revision, model.published, priorities()["kestrel-hd"]) == (3, True, 900_000)
    Channel.objects.update(credential="")
    response = li.post(f"{BASE}revisions/2/revert/", {"confirm": token(li, f"{BASE}revisions/2..3/")})
    assert response.status_code == 422
    assert "Revision 2 does not pass the gates now. Nothing was changed." in response.content.decode()
    assert priorities()["kestrel-hd"] == 900_000


def test_e15_any_two_revisions_are_compared(li: Client) -> None:
    text = li.get(f"{BASE}revisions/").content.decode()
    assert "give Kestrel more room" in text
    assert li.get(f"{BASE}revisions/?older=1&newer=2")["Location"] == f"{BASE}revisions/1..2/"
    (only,) = li.get(f"{BASE}revisions/1..2/").context["differences"]
    assert (only.label, only.before, only.after) == (
        "kestrel-hd (tier exact): priority",
        "900,000",
        "910,000",
    )
    assert li.get(f"{BASE}revisions/1..9/").status_code == 404


def test_e16_without_the_role_the_page_says_why_and_a_direct_post_is_refused_and_audited(
    li: Client, sign_in: SignIn
) -> None:
    saved(li)
    operator = sign_in("operator", username="zhao")
    page = operator.get(PUBLISH)
    assert "Publishing needs the role publisher" in page.content.decode()
    assert 'id="publish"' not in page.content.decode()
    assert operator.post(OPEN, {"confirm": page.context["token"]}).status_code == 403
    entry = AuditEntry.objects.get(action="refused change")
    assert (entry.actor, entry.after) == ("zhao", {"method": "POST", "needs": "publish"})


def test_taking_out_of_production_needs_a_reason_and_is_no_alarm(li: Client) -> None:
    page, now = f"{BASE}withdraw/", f"{BASE}withdraw/now/"
    assert li.post(now, {"confirm": token(li, page), "why": " "}).status_code == 422
    text = li.post(now, {"confirm": token(li, page), "why": "rights ended"}, follow=True).content.decode()
    assert "was taken out of production" in text
    assert 'data-off-air="vid-hd-5s"' not in text
    entry = AuditEntry.objects.get(action="withdraw model")
    assert entry.after is not None
    assert (entry.actor, entry.after["why"]) == ("li.m", "rights ended")
    assert "Publish revision 2" in li.get(PUBLISH).content.decode()


def test_publishing_a_revision_that_nobody_looked_at_is_refused(li: Client) -> None:
    saved(li)
    form = {"confirm": token(li, PUBLISH)}
    wang_saves(930_000)
    response = li.post(OPEN, form)
    assert response.status_code == 409
    assert "you looked at revision 3, and revision 4 was saved meanwhile" in response.content.decode()


def test_i2_no_word_of_the_pages_is_left_in_english(li: Client, world: ModelsWorld) -> None:
    li.post("/console/language/", {"language": "zh-hans"})
    world.edit_as(User.objects.get(username="li.m"), {"policy:order": "cost_first"})
    for address in world.pages():
        text = li.get(address).content.decode()
        for english in (
            "Required",
            "nothing is missing",
            "Priority",
            "Published",
            "exact binding",
            "Cost of",
        ):
            assert english not in text, (address, english)


def test_p8_a_form_field_is_shown_as_text(li: Client) -> None:
    keep(li, do="keep", disclosure='<script>alert("x")</script>')
    assert "<script>alert" not in li.get(f"{BASE}edit/").content.decode()
    assert DispatchPolicy.objects.count() == 1
