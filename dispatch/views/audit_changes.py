"""What an audit entry changed, field by field, in words: only what differs, with money and times as such."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from billing.money import micros_of
from catalog.models import AuditEntry
from dispatch.templatetags.console import count, money, span
from dispatch.views import audit_words as said
from dispatch.views import vocabulary as words
from dispatch.views.field_words import value_said
from dispatch.views.model_words import WORDS as PARAMETERS

type Path = tuple[str, ...]
type Told = str | datetime

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_AMOUNTS: Final = ("deposit", "fixed", "per_credit", "per_request", "per_second")
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_UNNAMED: Final = ("document",)  # holds all that was saved


@dataclass(frozen=True, slots=True)
class ChangedField:
    """One field in words, a nested one after what holds it; before and after are None where it was not."""

    field: str
    before: Told | None
    after: Told | None


@dataclass(frozen=True, slots=True)
class _Leaf:
    value: Any
    around: Mapping[str, Any]  # the document that holds it, e.g. with its currency


def changes_of(entry: AuditEntry) -> list[ChangedField]:
    kind = entry.subject.partition(":")[0]
    return changes_between(entry.before, entry.after, kind, entry.action)


def changes_between(before: Any, after: Any, kind: str = "", action: str = "") -> list[ChangedField]:
    """What is there afterwards comes first. Where there is only one document, all of it but what is empty."""
    has_both = before is not None and after is not None
    before, after = _leaves(before), _leaves(after)
    paths = [*after, *(path for path in before if path not in after)]
    return [
        ChangedField(_label(path, found, kind), _told(path, old, action), _told(path, new, action))
        for path in paths
        for old, new in [(before.get(path), after.get(path))]
        for found in [new or old]
        if found and (_differs(old, new) if has_both else found.value not in _EMPTY)
    ]


def _differs(old: _Leaf | None, new: _Leaf | None) -> bool:
    return old is None or new is None or old.value != new.value


def _leaves(document: Any) -> dict[Path, _Leaf]:
    return {} if document in _EMPTY else dict(_walk(document, (), {}))


def _walk(value: Any, path: Path, around: Mapping[str, Any]) -> Iterator[tuple[Path, _Leaf]]:
    if isinstance(value, Mapping) and value and set(value) != {"min", "max"}:
        told = value.keys() - {"supply", "tier"} if path and _is_binding(value) else value.keys()
        for name, each in value.items():
            if name in told:
                yield from _walk(each, (*path, str(name)), {**around, **value})
    elif isinstance(value, list) and any(isinstance(each, Mapping) and each for each in value):
        for number, each in enumerate(value, 1):
            yield from _walk(each, (*path, _name_of(each, number)), around)
    else:
        yield path, _Leaf(value, around)


def _name_of(item: Any, number: int) -> str:
    """What tells an item of a list from the others: a binding's supply and tier, else its place."""
    if _is_binding(item):
        return _in_tier(item["supply"], item["tier"])
    return str(number)


def _is_binding(item: Any) -> bool:
    return isinstance(item, Mapping) and "supply" in item and "tier" in item


def _label(path: Path, leaf: _Leaf, kind: str) -> str:
    hidden = {*_UNNAMED, *(("parameters",) if kind == "policy" else ())}
    return " › ".join(_word(name, leaf, kind) for name in path if name not in hidden)


def _word(name: str, leaf: _Leaf, kind: str) -> str:
    if name == "mode" and "currency" in leaf.around:
        return str(said.MODES_OF_PRICE)
    if name == "mode" and leaf.value in said.MAINTENANCE_MODES:
        return str(said.MODES_OF_MAINTENANCE)
    if name == "min_s" and "fixed" not in leaf.around:
        return str(said.LEAST_LENGTH)
    if kind == "model" and name in ("parameters", "enabled"):
        is_contract = name == "parameters"
        return str(said.CONTRACT) if is_contract else _enabled(leaf)
    return capfirst(str(said.FIELDS[name])) if name in said.FIELDS else name


def _enabled(leaf: _Leaf) -> str:
    """Of a binding, or of the model itself."""
    return capfirst(str(said.FIELDS["enabled"] if "supply" in leaf.around else said.ENABLED_MODEL))


def _told(path: Path, leaf: _Leaf | None, action: str) -> Told | None:
    if leaf is None:
        return None
    name = next((each for each in reversed(path) if not each.isdecimal()), "")
    value = leaf.value
    if value in _EMPTY:
        return _("none")
    if isinstance(value, str) and _MOMENT.match(value):
        return datetime.fromisoformat(value)
    if name == "state":
        return words.word(_states(action), value)
    if name.endswith("_micros") or name in _AMOUNTS:
        return _money(name, value, leaf.around)
    if name == "last_supply_of":
        return _listed([_tier_of_model(each) for each in value])
    return _in_words(name, value)


def _states(action: str) -> words.Words:
    return said.STATES.get(action.rpartition(" ")[2], said.ADMIN_STATES)


def _money(name: str, value: Any, around: Mapping[str, Any]) -> str:
    """In provider credits, an amount is a number and no money."""
    currency = around.get("currency") or ""
    if name in ("fixed", "per_request", "per_second") and "per_credit" in around:
        return str(value)
    try:
        micros = int(value) if name.endswith("_micros") else micros_of(str(value))
    except ValueError:
        return str(value)
    return money(micros, str(currency)).strip()


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, list):
        return _listed([_in_words(name, each) for each in value])
    if isinstance(value, bool | Mapping):
        return value_said(value)
    if name == "put_back_s":
        return span(value)
    if isinstance(value, int):
        unit = PARAMETERS[name].unit if name in PARAMETERS else ""
        return f"{count(value)} {unit}".strip()
    if isinstance(value, str) and name in said.VALUES:
        return words.word(said.VALUES[name], value)
    return value_said(value)


def _listed(texts: Sequence[str]) -> str:
    return pgettext("between the items of a list", ", ").join(texts)


def _tier_of_model(pair: str) -> str:
    model, _colon, tier = pair.rpartition(":")
    return _in_tier(model, tier)


def _in_tier(name: str, tier: str) -> str:
    return _("%(name)s (%(tier)s)") % {"name": name, "tier": words.word(words.TIER_NAMES, tier)}
