"""Who loses its last supply when some are taken out; pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from dispatch.routing.types import TIERS


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding that is switched on. `is_usable`: its supply could take a job now, if a slot were free."""

    model: str  # slugs
    tier: str
    supply: str
    is_usable: bool
    slots: int = 0
    peak: int = 0  # slots that were taken at most in the last day


@dataclass(frozen=True, slots=True)
class Loss:
    """What one tier of one model keeps. Counts are of its bindings; slots are those of the supplies, which
    other models may use too."""

    model: str
    tier: str
    bound: int
    kept: int
    usable_kept: int
    taken_at_peak: int = 0  # slots of what goes, in the last day
    free_at_peak: int = 0  # slots of what stays and is usable

    @property
    def is_last(self) -> bool:
        """Nobody of the tier could take a job any more."""
        return self.usable_kept == 0

    @property
    def is_tight(self) -> bool:
        """What stays had fewer free slots at its peak than what goes had taken."""
        return self.taken_at_peak > self.free_at_peak

    @property
    def key(self) -> str:
        return f"{self.model}:{self.tier}"


def losses(bindings: Iterable[Bound], out: Collection[str]) -> list[Loss]:
    """For each tier of each model that uses a supply of `out`; those that lose their last one first."""
    ordered = sorted(bindings, key=lambda each: (each.model, TIERS.index(each.tier)))
    found = [_loss(list(tier), out) for _, tier in groupby(ordered, key=lambda each: (each.model, each.tier))]
    return sorted((loss for loss in found if loss.kept < loss.bound), key=lambda loss: not loss.is_last)


def _loss(tier: list[Bound], out: Collection[str]) -> Loss:
    kept = [each for each in tier if each.supply not in out]
    usable = [each for each in kept if each.is_usable]
    return Loss(
        model=tier[0].model,
        tier=tier[0].tier,
        bound=len(tier),
        kept=len(kept),
        usable_kept=len(usable),
        taken_at_peak=sum(each.peak for each in tier if each.supply in out),
        free_at_peak=sum(max(0, each.slots - each.peak) for each in usable),
    )
