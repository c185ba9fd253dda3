"""Who loses its last supply when some are taken out; pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

_TIERS: Final = ("exact", "fallback", "degraded")


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that is switched on. `is_usable`: its supply could take a job now, if a slot were free."""

    model: str  # slugs
    tier: str
    supply: str
    is_usable: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """What one tier of one model keeps. Counts are of its bindings."""

    model: str
    tier: str
    bound: int
    kept: int
    usable_kept: int

    @property
    def is_last(self) -> bool:
        """Nobody of the tier could take a job any more."""
        return self.usable_kept == 0

    @property
    def key(self) -> str:
        return f"{self.model}:{self.tier}"


def losses(bindings: Iterable[Bound], out: Collection[str]) -> list[Loss]:
    """For each tier of each model that uses a supply of `out`; those that lose their last one first."""
    ordered = sorted(bindings, key=lambda each: (each.model, _TIERS.index(each.tier)))
    found = [_loss(list(tier), out) for _, tier in groupby(ordered, key=lambda each: (each.model, each.tier))]
    return sorted((loss for loss in found if loss.kept < loss.bound), key=lambda loss: not loss.is_last)


def _loss(tier: list[Bound], out: Collection[str]) -> Loss:
    kept = [each for each in tier if each.supply not in out]
    return Loss(tier[0].model, tier[0].tier, len(tier), len(kept), sum(each.is_usable for each in kept))
