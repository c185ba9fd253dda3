"""What the page that edits a public model shows: rows that never move, and the order that they result in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User

from catalog.facts import BindingFacts
from catalog.models import DegradationRule
from dispatch.drafting.fields import POLICY
from dispatch.drafting.notices import Notice, notices
from dispatch.drafting.reading import Draft, Fault, Row
from dispatch.queries.bindings_now import BindingNow, TierNow, bindings_now
from dispatch.queries.drafts import Edit, others_at, supplies_to_bind
from dispatch.queries.model_list import demand_for
from dispatch.routing.types import TIERS
from dispatch.views.model_words import CHOICES, GROUPS, WORDS


@dataclass(frozen=True)
class EditRow:
    """One binding of the form. `was` holds, by field, the text before, where it differs."""

    key: str
    facts: BindingFacts
    fields: Mapping[str, str]
    was: Mapping[str, str]
    faults: Mapping[str, Fault]
    bound: bool
    is_new: bool
    now: BindingNow | None

    @property
    def position(self) -> int | None:
        return self.now.placed.position if self.now and self.now.placed else None


@dataclass(frozen=True)
class EditTier:
    """Rows stand where the edit began, whatever their numbers became."""

    tier: str
    rows: Sequence[EditRow]
    notices: Sequence[Notice]

    @property
    def keys(self) -> list[str]:
        return [row.key for row in self.rows]

    @property
    def in_order(self) -> list[EditRow]:
        """Those that are tried, first to last."""
        placed = [row for row in self.rows if row.position is not None]
        return sorted(placed, key=lambda row: row.position or 0)


@dataclass(frozen=True)
class EditParameter:
    name: str
    label: Any
    help: Any
    kind: str
    unit: Any
    text: str
    was: str | None
    fault: Fault | None
    choices: Sequence[str]


def edit_form(edit: Edit, user: User | None, now: datetime, key: str = "") -> dict[str, Any]:
    """The context of the form; `user` is left out where only the order is asked for. `key` is that of the
    working copy to be, where the page has made one."""
    draft = edit.draft
    fields = {**edit.base.fields, **edit.typed}
    tiers = bindings_now(edit.model, draft.facts, draft.parameters, now)
    order = str(draft.parameters.get("order", "stable_first"))
    found = notices(
        [each.facts for tier in tiers for each in tier.bindings],
        {tier.tier: tier.usable for tier in tiers},
        order == "manual_priority",
    )
    return {
        "model": edit.model,
        "edit": edit,
        "key": (edit.copy and edit.copy.key) or key or uuid4().hex,
        "draft": draft,
        "fields": fields,
        "as_of": now,
        "order": order,
        "currency": draft.parameters.get("currency", "USD"),
        "tiers": _tiers(edit, draft, fields, tiers, found),
        "notices": [each for each in found if not each.tier],
        "groups": [
            (title, [_parameter(name, edit, draft, fields) for name in names if f"{POLICY}{name}" in fields])
            for title, names in GROUPS
        ],
        "changes": len(edit.typed),
        "rules": list(DegradationRule.objects.order_by("slug")),
        "choices": supplies_to_bind(edit.model),
        "tier_names": TIERS,
        "demand": demand_for(edit.model, now) if user else None,
        "others": others_at(edit.model, user) if user else [],
    }


def _tiers(
    edit: Edit,
    draft: Draft,
    fields: Mapping[str, str],
    tiers: Sequence[TierNow],
    found: Sequence[Notice],
) -> list[EditTier]:
    now = {each.key: each for tier in tiers for each in tier.bindings}
    rows = [_row(row, edit, draft, fields, now) for row in draft.rows]
    return [
        EditTier(
            tier,
            [row for row in rows if row.key.rpartition("@")[2] == tier],
            [each for each in found if each.tier == tier],
        )
        for tier in TIERS
    ]


def _row(
    row: Row, edit: Edit, draft: Draft, fields: Mapping[str, str], now: Mapping[str, BindingNow]
) -> EditRow:
    prefix, base = f"{row.key}:", edit.base.fields
    own = {name.removeprefix(prefix): text for name, text in fields.items() if name.startswith(prefix)}
    typed = {name.removeprefix(prefix) for name in edit.typed if name.startswith(prefix)}
    faults = {each.at.removeprefix(prefix): each for each in draft.faults if each.at.startswith(prefix)}
    was = {} if row.is_new else {name: base[prefix + name] for name in typed}
    here = now.get(f"{row.facts.supply}@{row.facts.tier}") if row.bound else None
    return EditRow(row.key, row.facts, own, was, faults, row.bound, row.is_new, here)


def _parameter(name: str, edit: Edit, draft: Draft, fields: Mapping[str, str]) -> EditParameter:
    field, words = f"{POLICY}{name}", WORDS[name]
    was = edit.base.fields[field] if field in edit.typed else None
    return EditParameter(
        name=field,
        label=words.label,
        help=words.help,
        kind=words.kind,
        unit=words.unit,
        text=fields[field],
        was=was,
        fault=draft.fault_of(field),
        choices=CHOICES.get(name, ()),
    )
