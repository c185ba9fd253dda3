"""Editing a public model: what may be typed, what is kept, and what happens where two edit at once."""

from django.test import Client

from catalog.models import PublicModel, SupplyBinding
from dispatch.models import WorkingCopy
from tests.console import SignIn
from tests.dispatch.views_models.editor import (
    KEEP,
    OSPREY,
    PUBLISH,
    REVIEW,
    SAVE,
    edited,
    keep,
    priorities,
    save,
    saved,
    token,
    wang_saves,
)
from tests.factories import SupplyHealthFactory
from tests.models_world import BASE, SLUG


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
    discard(li)
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


def test_e13_what_an_earlier_change_of_the_same_page_sent_and_comes_late_changes_nothing(li: Client) -> None:
    def typed() -> dict[str, str]:
        return WorkingCopy.objects.get().typed

    keep(li, do="keep", page="17000.5", step="7", **{OSPREY: "950000"})
    keep(li, do="keep", page="17000.5", step="4", **{OSPREY: "940000"})
    assert typed() == {OSPREY: "950000"}
    keep(li, do="keep", page="17000.5", step="7", **{OSPREY: "951000"})
    assert typed() == {OSPREY: "951000"}
    keep(li, do="keep", page="18000.5", step="1", **{OSPREY: "930000"})  # on another page, or loaded again
    assert typed() == {OSPREY: "930000"}
    keep(li, do="keep", **{OSPREY: "920000"})  # without script nothing is counted, nor overtakes
    assert typed() == {OSPREY: "920000"}


def discard(client: Client) -> str:
    """The token of the page that asked first."""
    token = str(client.get(f"{BASE}edit/discard/").context["token"])
    client.post(f"{BASE}edit/discard/now/", {"confirm": token})
    return token


def test_a_working_copy_is_discarded_only_after_what_is_lost_was_shown(li: Client) -> None:
    assert li.get(f"{BASE}edit/discard/")["Location"] == BASE, "there is nothing to discard"
    keep(li, do="keep", **{OSPREY: "950000"})
    assert f'href="{BASE}edit/discard/"' in li.get(f"{BASE}edit/").content.decode()
    told = li.get(f"{BASE}edit/discard/").content.decode()
    assert "<strong>950,000</strong>" in told
    assert "Discard 1 change" in told
    assert li.post(f"{BASE}edit/discard/now/").status_code == 403
    assert WorkingCopy.objects.get().typed == {OSPREY: "950000"}
    token = discard(li)
    assert not WorkingCopy.objects.exists()
    keep(li, do="keep", **{OSPREY: "960000"})
    again = li.post(f"{BASE}edit/discard/now/", {"confirm": token})
    assert again["Location"] == BASE
    assert WorkingCopy.objects.get().typed == {OSPREY: "960000"}, "a later copy stays"


def test_e13_what_comes_after_its_working_copy_was_discarded_is_refused_and_shown(li: Client) -> None:
    key = li.get(f"{BASE}edit/").context["key"]
    keep(li, do="keep", key=key, page="17000.5", step="2", **{OSPREY: "950000"})
    assert li.get(f"{BASE}edit/").context["key"] == key
    discard(li)
    for step in ("1", "3"):  # sent before, and after
        late = keep(li, do="keep", key=key, page="17000.5", step=step, **{OSPREY: "960000"})
        assert late.status_code == 409
        assert not WorkingCopy.objects.exists()
    text = late.content.decode()
    assert "Not kept: this working copy is gone" in text
    assert "<strong>960,000</strong>" in text
    fresh = late.context["key"]
    assert keep(li, do="keep", key=fresh, **late.context["edit"].typed).status_code == 302
    assert WorkingCopy.objects.get().typed == {OSPREY: "960000"}


def test_e13_what_comes_after_its_working_copy_was_saved_is_refused(li: Client) -> None:
    keep(li, key="k" * 32, **{OSPREY: "950000"})
    assert save(li)["Location"] == PUBLISH
    assert keep(li, key="k" * 32, base=3, **{OSPREY: "960000"}).status_code == 409
    assert not WorkingCopy.objects.exists()
    assert priorities()["osprey-pro"] == 950_000


def test_e13_what_was_typed_back_may_be_typed_again_on_the_same_page(li: Client) -> None:
    for priority, kept in (("950000", True), ("700000", False), ("960000", True)):
        keep(li, do="keep", key="k" * 32, **{OSPREY: priority})
        assert WorkingCopy.objects.exists() == kept


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
