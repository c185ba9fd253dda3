"""How many slots of unknown outcome each channel and supply holds, against the most it may hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dispatch.capacity import Kind, Subject
from dispatch.live_catalogue import LiveCatalogue, ServedModel
from dispatch.models import Occupancy


@dataclass(frozen=True, slots=True)
class UnknownSlots:
    held: int
    limit: int

    @property
    def is_full(self) -> bool:
        """Nothing new starts there."""
        return self.held >= self.limit


def unknown_slots(
    catalogue: LiveCatalogue, models: Iterable[ServedModel], occupancy: Mapping[Subject, Occupancy]
) -> dict[str, UnknownSlots]:
    """Of every candidate of `models`, by `channel:slug` and `supply:slug`."""
    found = {}
    supplies = {candidate.supply.id: candidate.supply for model in models for candidate in model.candidates}
    for slug, supply in supplies.items():
        place, channel = catalogue.supplies[slug].place, supply.channel
        of_channel, of_supply = (Kind.CHANNEL.value, place.channel_id), (Kind.SUPPLY.value, place.supply_id)
        found[f"channel:{channel.id}"] = _slots(occupancy.get(of_channel), channel.unknown_limit)
        found[f"supply:{slug}"] = _slots(occupancy.get(of_supply), supply.unknown_limit)
    return found


def _slots(row: Occupancy | None, limit: int) -> UnknownSlots:
    return UnknownSlots(0 if row is None else row.unknown, limit)
