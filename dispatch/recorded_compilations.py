"""What adapters said of a recorded round's request, and would say where the round never asked them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dispatch.routing.reasons import REASONS
from dispatch.routing.types import Candidate, RoutingInput

type Told = Mapping[str, Any]

_COMPILED_AT = 5  # of the thirteen steps
_ASKED_BEFORE = frozenset({"billing_mode", "already_tried"})  # reasons of step 4 and 5 that come after it
_DROPPED_NOTHING: tuple[str, ...] = ()


class RecordedCompilations(Mapping[str, str]):
    """Why an adapter refuses a recorded request, by candidate key of `candidates`.

    What the round found is kept; what it never asked (a layer that was not reached, a new binding) is
    compiled `now`, when routing asks."""

    def __init__(
        self, recorded: Told, inputs: RoutingInput, candidates: Iterable[Candidate], now: Mapping[str, str]
    ) -> None:
        self._found = _found(recorded, inputs)
        self._asked = {it.key: (it.supply.id, _dropped(it)) for it in candidates}
        self._now = now

    def _answer(self, key: str) -> str | None:
        asked = self._asked.get(key)
        return self._found[asked] if asked in self._found else self._now.get(key)

    def __getitem__(self, key: str) -> str:
        refusal = self._answer(key)
        if refusal is None:
            raise KeyError(key)
        return refusal

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._asked if self._answer(key) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _found(recorded: Told, inputs: RoutingInput) -> dict[tuple[str, tuple[str, ...]], str | None]:
    """By supply and the inputs that were dropped for it: the refusal, or None where it compiled."""
    found: dict[tuple[str, tuple[str, ...]], str | None] = {}
    for candidate in inputs.candidates:
        refusal = inputs.compile_refusals.get(candidate.key)
        if refusal or _was_asked(recorded["decision"]["candidates"][candidate.key]["reason"]):
            found[candidate.supply.id, _dropped(candidate)] = refusal
    return found


def _was_asked(reason: str | None) -> bool:
    """Whether the adapter of a candidate that ended so was asked, given that it did not refuse."""
    if reason is None or reason in _ASKED_BEFORE:
        return True
    return REASONS[reason].step > _COMPILED_AT


def _dropped(candidate: Candidate) -> tuple[str, ...]:
    return _DROPPED_NOTHING if candidate.rule is None else candidate.rule.drop_inputs
