"""Two people changed one model: what of both fits together, and what somebody must choose."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dispatch.drafting.fields import ON, Fields, row_of


@dataclass(frozen=True, slots=True)
class Clash:
    """One field that both changed, each to another value; None where the binding is not there."""

    field: str
    base: str | None
    theirs: str | None
    mine: str | None


@dataclass(frozen=True, slots=True)
class Merge:
    """`mine` are my changes that stand beside theirs, over their revision; each clash needs a choice."""

    mine: Mapping[str, str]
    theirs: Mapping[str, str]  # what they changed, and I did not
    clashes: tuple[Clash, ...]


def merge(base: Fields, theirs: Fields, typed: Fields) -> Merge:
    """`typed` is what I changed of `base`; `theirs` is the whole revision that is stored now."""
    gone = dict(_gone(base, theirs, typed))
    their_changes = _their_changes(base, theirs)
    mine: dict[str, str] = {}
    clashes = list(gone.values())
    for name, value in typed.items():
        if row_of(name) in gone:
            continue
        if name in their_changes and their_changes[name] != value:
            clashes.append(Clash(name, base.get(name), theirs.get(name), value))
        elif theirs.get(name, "") != value:
            mine[name] = value
    undisputed = {
        name: value for name, value in their_changes.items() if name not in typed and row_of(name) not in gone
    }
    return Merge(mine, undisputed, tuple(clashes))


def chosen(found: Merge, base: Fields, typed: Fields, choices: Mapping[str, str]) -> dict[str, str] | None:
    """My changes over their revision, each clash as chosen ("mine" or "theirs"); None while one is open."""
    result = dict(found.mine)
    for clash in found.clashes:
        choice = choices.get(clash.field)
        if choice not in ("mine", "theirs"):
            return None
        if choice == "mine":
            result |= _mine_of(clash, base, typed)
    return result


def _mine_of(clash: Clash, base: Fields, typed: Fields) -> dict[str, str]:
    """A binding that they took out comes back whole; else it is one field."""
    row = row_of(clash.field)
    if row is None or not clash.field.endswith(":bound"):
        return {clash.field: clash.mine or ""}
    own = {name: value for name, value in {**base, **typed}.items() if row_of(name) == row}
    return {**own, clash.field: clash.mine or ""}


def _their_changes(base: Fields, theirs: Fields) -> dict[str, str]:
    """With an empty `bound` for each binding that they took out."""
    changed = {name: value for name, value in theirs.items() if base.get(name) != value}
    removed = {name: "" for name in base if name.endswith(":bound") and name not in theirs}
    return changed | removed


def _gone(base: Fields, theirs: Fields, typed: Fields) -> Iterator[tuple[str, Clash]]:
    """Bindings that one side took out and the other changed, by row."""
    changed_rows = {row for name in typed if (row := row_of(name))}
    their_rows = {row for name in _their_changes(base, theirs) if (row := row_of(name))}
    for row in sorted(changed_rows & their_rows):
        bound = f"{row}:bound"
        was, mine = base.get(bound, ""), typed.get(bound, base.get(bound, ""))
        now = theirs.get(bound, "")
        if was == ON and mine != now:
            yield row, Clash(bound, was, now, mine)
