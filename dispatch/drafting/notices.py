"""What an editor should read beside the numbers: ties, no room between two, a tier that nobody serves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from catalog.facts import BindingFacts
from catalog.policy import PRIORITY_MAX

STEP: Final = 10_000
TIE: Final = "Same priority {priority} in this tier: {supplies}. Cost decides between them, then health."
ALL_ZERO: Final = "Every priority in this tier is 0: cost decides the order, then health."
NO_ROOM: Final = "No number fits between {supplies}. Renumber to make room."
NOBODY: Final = "Nobody in this tier can take work now."
NO_BINDING: Final = "No supply is bound: customers could not use this model."
NO_EXACT: Final = "No exact supply is bound: the model could not be published."
NO_EFFECT: Final = "The policy of this model does not read priorities: they have no effect."
NOTICES: Final = (TIE, ALL_ZERO, NO_ROOM, NOBODY, NO_BINDING, NO_EXACT, NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Notice:
    """An English msgid with its values; `tier` is "" for the model as a whole."""

    tier: str
    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)


def notices(
    bindings: Sequence[BindingFacts], usable: Mapping[str, int], reads_priorities: bool
) -> list[Notice]:
    """`bindings` as drafted, each tier in its order; `usable` counts, by tier, who could take work now."""
    found = [] if reads_priorities else [Notice("", NO_EFFECT)]
    found += _of_model(bindings)
    for tier in ("exact", "fallback", "degraded"):
        own = [each for each in bindings if each.tier == tier]
        if own and not usable.get(tier):
            found.append(Notice(tier, NOBODY))
        if reads_priorities:
            found += _of_numbers(tier, [each for each in own if each.enabled])
    return found


def _of_model(bindings: Sequence[BindingFacts]) -> Iterator[Notice]:
    if not bindings:
        yield Notice("", NO_BINDING)
    elif not any(each.tier == "exact" for each in bindings):
        yield Notice("", NO_EXACT)


def _of_numbers(tier: str, own: Sequence[BindingFacts]) -> Iterator[Notice]:
    if len(own) > 1 and all(each.priority == 0 for each in own):
        yield Notice(tier, ALL_ZERO)
        return
    for priority, count in Counter(each.priority for each in own).items():
        if count > 1:
            tied = _names(each for each in own if each.priority == priority)
            yield Notice(tier, TIE, {"priority": f"{priority:,}", "supplies": tied})
    for above, below in _neighbours(own):
        if above.priority - below.priority == 1:
            yield Notice(tier, NO_ROOM, {"supplies": _names((above, below))})


def _neighbours(own: Sequence[BindingFacts]) -> Iterator[tuple[BindingFacts, BindingFacts]]:
    ordered = sorted(own, key=lambda each: -each.priority)
    return pairwise(ordered)


def _names(bindings: Iterable[BindingFacts]) -> str:
    return ", ".join(each.supply for each in bindings)


def moved(ordered: Sequence[tuple[str, int]], key: str, up: bool) -> int | None:
    """A new priority for `key` that brings it one place up or down, changing no other; None where no number
    fits, or there is no place to go. `ordered`: keys with priorities, first tried first."""
    keys = [each for each, _ in ordered]
    at = keys.index(key)
    past, beyond = (at - 1, at - 2) if up else (at + 1, at + 2)
    if not 0 <= past < len(ordered):
        return None
    near = ordered[past][1]
    far = ordered[beyond][1] if 0 <= beyond < len(ordered) else None
    if up:
        far = min(near + 2 * STEP, PRIORITY_MAX + 1) if far is None else far
        return (near + far) // 2 if far - near > 1 else None
    far = max(near - 2 * STEP, -1) if far is None else far
    return -((-near - far) // 2) if near - far > 1 else None


def renumbered(ordered: Sequence[str]) -> dict[str, int]:
    """Steps of STEP, the first highest."""
    return {key: STEP * (len(ordered) - index) for index, key in enumerate(ordered)}
