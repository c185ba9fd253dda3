"""Compiles a job's request for its candidates, each at most once and only when routing asks."""

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.degradation import transformed
from catalog.providers.registry import adapter_for
from catalog.providers.types import CompileError, CompilePlan
from dispatch.inputs.delivery import undeliverable
from dispatch.live_catalogue import LiveCatalogue, ServedModel
from dispatch.routing.types import Candidate


class Compilations(Mapping[str, str]):
    """As a mapping: why the adapter refuses, by candidate key; keys of those that compile are absent."""

    def __init__(self, request: Mapping[str, Any], model: ServedModel, catalogue: LiveCatalogue) -> None:
        self._request, self._catalogue = request, catalogue
        self._candidates = {candidate.key: candidate for candidate in model.candidates}
        self._results: dict[str, CompilePlan | CompileError] = {}

    def plan(self, key: str) -> CompilePlan:
        """The native request of a candidate that routing chose, and therefore compiles."""
        result = self._result(key)
        if isinstance(result, CompileError):
            raise TypeError(f"{key} was chosen although it does not compile: {'; '.join(result.reasons)}")
        return result

    def transformed_request(self, key: str) -> dict[str, Any] | None:
        """The request that a degraded candidate executes; None for one that executes the customer's own."""
        candidate = self._candidates[key]
        return None if candidate.rule is None else transformed(self._request, candidate.rule)

    def _result(self, key: str) -> CompilePlan | CompileError:
        if key not in self._results:
            self._results[key] = self._compile(self._candidates[key])
        return self._results[key]

    def _compile(self, candidate: Candidate) -> CompilePlan | CompileError:
        facts = self._catalogue.supplies[candidate.supply.id]
        request = self.transformed_request(candidate.key) or self._request
        adapter = adapter_for(facts.provider)
        unreachable = undeliverable(request, adapter.capabilities)
        return CompileError(unreachable) if unreachable else adapter.compile(request, facts.target)

    def __getitem__(self, key: str) -> str:
        result = self._result(key)
        if isinstance(result, CompileError):
            return "; ".join(result.reasons)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._candidates if isinstance(self._result(key), CompileError))

    def __len__(self) -> int:
        return sum(1 for _ in self)
