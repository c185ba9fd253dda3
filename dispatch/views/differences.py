"""What differs between two versions of a public model, field by field, in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dispatch.drafting.fields import row_of
from dispatch.views.model_words import label_of, value_of


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that changes, in words."""

    field: str
    label: str
    before: str
    after: str


def differences(base: Mapping[str, str], typed: Mapping[str, str]) -> list[Difference]:
    """Each changed field in words; of a binding that comes or goes, one line."""
    return list(_differences(base, typed))


def _differences(base: Mapping[str, str], typed: Mapping[str, str]) -> Iterator[Difference]:
    whole_rows = {row_of(name) for name in typed if name.endswith(":bound")}
    for name, text in typed.items():
        if row_of(name) in whole_rows and not name.endswith(":bound"):
            if not base.get(name) and typed.get(f"{row_of(name)}:bound") and text:
                yield Difference(name, label_of(name), "—", value_of(name, text))
            continue
        yield Difference(name, label_of(name), value_of(name, base.get(name)), value_of(name, text))


def changed_fields(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """What of `after` is not as in `before`; of a binding that is gone, an empty `bound`."""
    changed = {name: text for name, text in after.items() if before.get(name) != text}
    gone = {name: "" for name in before if name.endswith(":bound") and name not in after}
    return changed | gone
