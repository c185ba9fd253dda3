"""What an import would change, as values and as lines to read; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import yaml

from dispatch.catalogue.source import inside

# The keys by which the items of a list are the same item; other lists are compared whole.
IDENTITIES: Mapping[str, tuple[str, ...]] = {
    "bindings": ("supply", "tier"),
    "capacity_groups": ("endpoint", "account"),
    "currency_rates": ("from", "to"),
}


class Absent(Enum):
    """The side on which an entry does not exist, apart from one that is null."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs; `entry` is its section and its name there, e.g. ("channels", "ark")."""

    entry: tuple[str, str]
    path: str
    before: Any
    after: Any


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What `after` adds and changes. Entries that only `before` has are no change: a document never
    deletes an entry, see `unnamed`; bindings are part of their model and are taken away."""
    return [
        Change((section, name), path, old, new)
        for section, name, old_entry, new_entry in _entries(before, after)
        if new_entry is not ABSENT
        for path, old, new in _differing(f"{section}.{name}", section, old_entry, new_entry)
    ]


def unnamed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The entries that exist and that the document does not name; they stay as they are."""
    return [f"{section}.{name}" for section, name, _, new in _entries(before, after) if new is ABSENT]


def _entries(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    for section in after:
        if section == "version":
            continue
        old, new = (_by_name(section, side.get(section, {})) for side in (before, after))
        for name in [*new, *(name for name in old if name not in new)]:
            yield section, name, old.get(name, ABSENT), new.get(name, ABSENT)


def _by_name(key: str, items: Any) -> Mapping[str, Any]:
    if isinstance(items, Mapping):
        return items
    return {" ".join(str(item[name]) for name in IDENTITIES[key]): item for item in items}


def _differing(path: str, key: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*after, *(name for name in before if name not in after)]:
            old, new = before.get(name, ABSENT), after.get(name, ABSENT)
            yield from _differing(inside(path, name), name, old, new)
    elif key in IDENTITIES and isinstance(before, list) and isinstance(after, list):
        old_items, new_items = _by_name(key, before), _by_name(key, after)
        for name in [*new_items, *(name for name in old_items if name not in new_items)]:
            old, new = old_items.get(name, ABSENT), new_items.get(name, ABSENT)
            yield from _differing(f"{path}[{name}]", "", old, new)
    else:
        yield path, before, after


def lines(changes: list[Change]) -> Iterator[str]:
    """The changes for people: `+` what comes, `-` what goes, `~` what becomes another."""
    for change in changes:
        if change.before is ABSENT:
            yield from _block("+", change.path, change.after)
        elif change.after is ABSENT:
            yield from _block("-", change.path, change.before)
        else:
            yield f"~ {change.path}: {_short(change.before)} → {_short(change.after)}"


def _block(sign: str, path: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        yield f"{sign} {path}: {_short(value)}"
        return
    yield f"{sign} {path}:"
    told = {name: item for name, item in value.items() if item not in (None, "", [], {})}
    for line in as_yaml(told).splitlines():
        yield f"{sign}   {line}"


def _short(value: Any) -> str:
    return as_yaml(value, flow=True).removesuffix("...\n").strip()


def as_yaml(value: Any, flow: bool | None = None) -> str:
    """YAML in the order given; short lists and objects of plain values on one line."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=flow
    )


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and never writes an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)
