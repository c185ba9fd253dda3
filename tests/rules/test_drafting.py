"""A public model as a form: what is typed is read, compared, merged and remarked on."""

from dataclasses import replace

from catalog.facts import BindingFacts, ModelFacts
from dispatch.drafting.fields import differing, fields_of
from dispatch.drafting.merging import chosen, merge
from dispatch.drafting.notices import moved, renumbered
from dispatch.drafting.reading import canonical, read_draft

FACTS = ModelFacts(
    slug="vid",
    modality="video",
    display_name="Video",
    parameters={},
    policy="by-hand@1",
    bindings=(
        BindingFacts("a", "exact", 900),
        BindingFacts("b", "exact", 500),
        BindingFacts("b", "fallback"),
    ),
)
POLICY = {"order": "manual_priority", "max_cost_micros": 30_000_000, "max_platform_loss_micros": 5}
BASE = fields_of(FACTS, POLICY)


def test_what_was_not_typed_reads_back_as_it_was() -> None:
    draft = read_draft(FACTS, POLICY, {})
    assert (draft.facts, draft.parameters, draft.faults) == (FACTS, POLICY, ())
    assert BASE["policy:max_cost_micros"] == "30.00"


def test_each_typed_field_changes_its_fact_and_no_other() -> None:
    draft = read_draft(FACTS, POLICY, {"a@exact:tier": "fallback", "policy:max_cost_micros": ""})
    assert draft.facts == replace(
        FACTS,
        bindings=(
            BindingFacts("b", "exact", 500),
            BindingFacts("a", "fallback", 900),
            BindingFacts("b", "fallback"),
        ),
    )
    assert draft.parameters == {**POLICY, "max_cost_micros": None}


def test_a_binding_that_is_taken_out_keeps_its_row_and_leaves_the_facts() -> None:
    draft = read_draft(FACTS, POLICY, {"a@exact:bound": ""})
    assert [each.supply for each in draft.facts.bindings] == ["b", "b"]
    assert [row.key for row in draft.rows] == ["a@exact", "b@exact", "b@fallback"]


def test_a_row_that_was_added_and_taken_out_again_is_no_difference() -> None:
    assert differing(BASE, {"c@exact:bound": "", "c@exact:priority": "7"}) == {}
    assert differing(BASE, {"a@exact:priority": "900"}) == {}


def test_the_same_value_written_otherwise_is_the_same_text() -> None:
    for name, typed, written in (
        ("a@exact:priority", "1,000,000", "1000000"),
        ("policy:max_cost_micros", "30", "30.00"),
        ("policy:success_band", "0.020", "0.02"),
        ("policy:probe_every", "1,000", "1000"),
        ("disclosure", "one\r\ntwo", "one\ntwo"),
        ("a@exact:priority", "1.5", "1.5"),
    ):
        assert canonical(name, typed) == written


def test_changes_of_two_people_that_do_not_meet_are_merged() -> None:
    theirs = {**BASE, "a@exact:priority": "950"}
    found = merge(BASE, theirs, {"b@exact:priority": "600"})
    assert (found.mine, found.theirs, found.clashes) == (
        {"b@exact:priority": "600"},
        {"a@exact:priority": "950"},
        (),
    )


def test_the_same_change_by_both_is_none_of_mine() -> None:
    theirs = {**BASE, "a@exact:priority": "950"}
    found = merge(BASE, theirs, {"a@exact:priority": "950"})
    assert (found.mine, found.clashes) == ({}, ())


def test_a_field_that_both_changed_waits_for_a_choice() -> None:
    typed = {"a@exact:priority": "990"}
    found = merge(BASE, {**BASE, "a@exact:priority": "950"}, typed)
    (clash,) = found.clashes
    assert (clash.base, clash.theirs, clash.mine) == ("900", "950", "990")
    assert chosen(found, BASE, typed, {}) is None
    assert chosen(found, BASE, typed, {clash.field: "theirs"}) == {}
    assert chosen(found, BASE, typed, {clash.field: "mine"}) == typed


def test_a_binding_that_they_took_out_comes_back_whole_where_mine_is_chosen() -> None:
    theirs = {name: text for name, text in BASE.items() if not name.startswith("a@exact:")}
    typed = {"a@exact:priority": "990"}
    found = merge(BASE, theirs, typed)
    (clash,) = found.clashes
    assert (clash.field, clash.theirs) == ("a@exact:bound", "")
    mine = chosen(found, BASE, typed, {"a@exact:bound": "mine"})
    assert mine == {
        "a@exact:bound": "on",
        "a@exact:tier": "exact",
        "a@exact:priority": "990",
        "a@exact:enabled": "on",
        "a@exact:rule": "",
    }
    assert chosen(found, BASE, typed, {"a@exact:bound": "theirs"}) == {}


def test_moving_finds_a_number_between_and_never_changes_another() -> None:
    order = [("a", 900_000), ("b", 500_000), ("c", 499_999)]
    assert moved(order, "c", up=True) == 700_000
    assert moved(order, "b", up=True) == 910_000
    assert moved(order, "a", up=True) is None
    assert moved(order, "b", up=False) == 489_999
    assert moved(order, "a", up=False) is None  # nothing fits between b and c
    assert moved([("a", 1_000_000), ("b", 5)], "b", up=True) is None
    assert moved([("a", 3), ("b", 0)], "a", up=False) is None


def test_renumbering_leaves_room() -> None:
    assert renumbered(["a", "b", "c"]) == {"a": 30_000, "b": 20_000, "c": 10_000}
