"""What an entry of the audit changed, in words: only what differs, in both languages."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import translation

from catalog.facts import BindingFacts, ChannelFacts, ModelFacts, RuleFacts, SupplyFacts, plain
from catalog.models import AuditEntry
from catalog.policy import Policy
from dispatch.views.access import MATRIX
from dispatch.views.audit_changes import ChangedField, changes_of
from dispatch.views.audit_words import FIELDS, HEALTH_PARAMETERS, PERMISSIONS
from health.parameters import NAMES

BINDING = {"supply": "kestrel-hd", "tier": "exact", "priority": 700_000, "enabled": True, "rule": None}


def entry(action: str, subject: str, before: Any, after: Any) -> AuditEntry:
    return AuditEntry(action=action, subject=subject, before=before, after=after)


def told(action: str, subject: str, before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    return [
        (each.field, each.before, each.after) for each in changes_of(entry(action, subject, before, after))
    ]


def test_only_what_differs_is_told_and_a_binding_by_its_supply_and_tier() -> None:
    before = {"disclosure": "", "bindings": [BINDING]}
    other = BINDING | {"supply": "osprey-pro"}
    after = {"disclosure": "Without sound.", "bindings": [BINDING | {"priority": 900_000}, other]}
    lines = told("save model", "model:mod_1", before, after)
    assert lines[:2] == [
        ("Disclosure to customers", "none", "Without sound."),
        ("Binding › kestrel-hd (tier exact) › Priority", "700,000", "900,000"),
    ]
    assert ("Binding › osprey-pro (tier exact) › Switched on", None, "yes") in lines
    assert not [field for field, _before, _after in lines if field.endswith(("› Supply", "› Tier"))]


def test_money_is_money_times_are_times_and_spans_have_their_unit() -> None:
    policy = {
        "max_cost_micros": 250_000,
        "currency": "EUR",
        "dispatch_deadline_s": 900,
        "order": "cost_first",
    }
    assert told("save policy", "policy:pol_1", None, {"name": "usual@2", "parameters": policy}) == [
        ("Name", None, "usual@2"),
        ("Ceiling for one job", None, "€0.25"),
        ("Currency", None, "EUR"),
        ("A job may wait for a supply at most", None, "900 seconds"),
        ("Order", None, "cost first"),
    ]
    price = {"mode": "per_second", "currency": "USD", "per_second": "0.0424", "min_s": 4}
    planned = {"version": 3, "from": "2026-12-07T00:00:00+00:00", "document": price}
    assert told("schedule price", "supply:sup_1", None, planned) == [
        ("Version", None, "3"),
        ("In force from", None, datetime(2026, 12, 7, tzinfo=UTC)),
        ("How it is charged", None, "by the second"),
        ("Currency", None, "USD"),
        ("Unit price", None, "$0.0424"),
        ("Least length charged (s)", None, "4"),
    ]
    credits = price | {"per_credit": "0.01", "per_second": "4"}
    assert ("Unit price", "$0.0424", "4") in told("publish price", "supply:sup_1", price, credits)


@pytest.mark.parametrize(
    ("action", "before", "after", "line"),
    [
        (
            "disable channel health",
            {"state": "healthy"},
            {"state": "disabled"},
            ("State", "Healthy", "Disabled"),
        ),
        ("cancel job", {"state": "running"}, {}, ("State", "Running", None)),
        ("save supply", {"state": "enabled"}, {"state": "draining"}, ("State", "switched on", "draining")),
        ("start maintenance", None, {"mode": "drain"}, ("What stops", None, "Drain")),
        (
            "start maintenance",
            None,
            {"last_supply_of": ["vid-hd-5s:exact"]},
            ("Models that lose their last supply", None, "vid-hd-5s (tier exact)"),
        ),
        ("follow clock", None, {"put_back_s": 75}, ("Put back by", None, "1 min 15 s")),
        ("issue api key", None, {"scopes": ["read", "submit"]}, ("May", None, "read, submit")),
        ("something new", {"a_new_field": 1}, {"a_new_field": 2}, ("a_new_field", "1", "2")),
    ],
)
def test_a_value_is_said_by_its_field(
    action: str, before: Any, after: Any, line: tuple[str, str | None, str | None]
) -> None:
    assert told(action, "channel:chn_1", before, after) == [line]


def test_an_entry_without_documents_tells_no_change() -> None:
    assert changes_of(entry("reseal credential", "channel:chn_1", None, None)) == []
    same = {"modes": ["text_to_video"], "durations_s": {"min": 4, "max": 15}}
    assert changes_of(entry("publish capability", "supply:sup_1", same, same)) == []
    assert changes_of(entry("publish capability", "supply:sup_1", {}, same)) == [
        ChangedField("Modes", None, "text to video"),
        ChangedField("Lengths (s)", None, "4–15"),
    ]


def test_every_field_that_is_saved_has_words_in_both_languages() -> None:
    facts = (ChannelFacts, SupplyFacts, RuleFacts, BindingFacts, ModelFacts)
    names = {field.name for each in facts for field in fields(each)} - {"supply", "parameters"}
    names |= {field.name for field in fields(Policy)} | set(NAMES)
    assert names - set(FIELDS) == set()
    assert set(HEALTH_PARAMETERS) == set(NAMES)
    assert set(PERMISSIONS) == set(MATRIX)
    with translation.override("zh-hans"):
        assert not [name for name, words in FIELDS.items() if str(words).isascii()]
        model = ModelFacts(
            "vid", "video", "Vid", {}, "usual", bindings=(BindingFacts("kestrel-hd", "exact"),)
        )
        lines = told("save model", "model:mod_1", None, plain(model))
    assert ("供给绑定 › kestrel-hd（精确档） › 优先级", None, "0") in lines
