"""Refusal records that hold for no supply any more, since each has crossed a boundary."""

from collections import defaultdict
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from catalog.models import Supply
from health.memory import end_record, place_of
from health.models import RefusalRecord
from health.refusals import Place


def end_outlived_refusals(now: datetime) -> int:
    """Ends them and resolves what operators were told of them; how many. For the housekeeping."""
    places: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for supply in Supply.objects.select_related("channel"):
        place = place_of(supply)
        places[place.provider, place.model_family].append(place)
    return sum(_end(family, here, now) for family, here in places.items())


def _end(family: tuple[str, str], places: list[Place], now: datetime) -> int:
    provider, model_family = family
    held = Q()
    for place in places:
        number = str(place.supply_id)
        of_place = Q(supply=None) | Q(supply=place.supply_id)
        # A supply that the record does not name came later, and is held too.
        same = Q(versions__contains={number: place.version}) | ~Q(versions__has_key=number)
        held |= of_place & same
    outlived = RefusalRecord.objects.filter(
        provider=provider, model_family=model_family, ended_at=None
    ).exclude(held)
    with transaction.atomic():
        rows = list(outlived.select_for_update().order_by("pk"))
        for row in rows:
            end_record(row, by="", why="every supply it held for has changed", now=now)
    return len(rows)
