"""Who changed what: the audit's entries, filtered, newest first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Model, Q, QuerySet, Value
from django.http import QueryDict

from billing.models import Customer
from catalog.models import AuditEntry, Channel, DegradationRule, DispatchPolicy, PublicModel, Supply
from dispatch.queries.days import Days

ACTORS_SHOWN: Final = 200
_NAMED: Final[Mapping[str, tuple[type[Model], str]]] = {  # by what is of a kind called
    "model": (PublicModel, "slug"),
    "channel": (Channel, "slug"),
    "supply": (Supply, "slug"),
    "customer": (Customer, "name"),
    "policy": (DispatchPolicy, "slug"),
    "rule": (DegradationRule, "slug"),
}
OLD_KINDS: Final[Mapping[str, str]] = {"group": "capacity_group"}  # what old entries call it: its name since
_CHUNK: Final = 2_000


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """`subject` is a kind such as `supply`, or a whole `supply:sup_…`; `request` an X-Request-Id."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    request: str = ""


def parse_filter(query: QueryDict) -> AuditFilter:
    return AuditFilter(
        query.get("actor", "").strip()[:150],
        query.get("action", "")[:60],
        _subject(query.get("subject", "").strip()[:120]),
        query.get("request", "").strip()[:64],
    )


def _subject(told: str) -> str:
    return OLD_KINDS.get(told, told)


def matching(wanted: AuditFilter, days: Days | None) -> QuerySet[AuditEntry]:
    """Of these days; None: of all."""
    entries = AuditEntry.objects.all()
    if days is not None:
        entries = entries.filter(at__gte=days.start, at__lt=days.end)
    if wanted.actor:
        entries = entries.filter(actor=wanted.actor)
    if wanted.action:
        entries = entries.filter(action=wanted.action)
    if wanted.request:
        entries = entries.filter(request_id=wanted.request)
    if not wanted.subject:
        return entries
    return entries.filter(_of(wanted.subject))


def _of(subject: str) -> Q:
    """By every name that its kind has had."""
    kind, _colon, public_id = subject.partition(":")
    now = OLD_KINDS.get(kind, kind)
    kinds = [now, *(old for old, since in OLD_KINDS.items() if since == now)]
    if public_id:
        return Q(subject__in=[f"{each}:{public_id}" for each in kinds])
    return Q(*(Q(subject__startswith=f"{each}:") for each in kinds), _connector=Q.OR)


def entries_again(ids: Sequence[str]) -> list[AuditEntry]:
    """Those on the screen, in its order."""
    numbers = [int(each) for each in ids if each.isascii() and each.isdigit() and len(each) < 19]
    found = AuditEntry.objects.in_bulk(numbers)
    return [found[number] for number in numbers if number in found]


@dataclass(frozen=True, slots=True)
class EntryLine:
    """An entry never changes: lines with its number, its time and the same `name` look alike."""

    pk: int
    at: datetime
    name: str  # slug of what it is about, or ""
    entry: AuditEntry = field(compare=False)


def lines_of(entries: Sequence[AuditEntry]) -> list[EntryLine]:
    """One query."""
    names = names_of(entries)
    return [EntryLine(each.pk, each.at, names.get(each.subject, ""), each) for each in entries]


def names_of(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """What models, channels, supplies, customers, policies and rules are called, by the subject of an entry.
    One query."""
    ids = {kind: set[str]() for kind in _NAMED}
    for entry in entries:
        kind, _colon, public_id = entry.subject.partition(":")
        ids.get(kind, set()).add(public_id)
    read = [
        model._default_manager.filter(public_id__in=ids[kind])
        .order_by()
        .values_list(Value(kind), "public_id", name)
        for kind, (model, name) in _NAMED.items()
    ]
    told = read[0].union(*read[1:], all=True)
    return {f"{kind}:{public_id}": name for kind, public_id, name in told}


def actors(days: Days) -> list[str]:
    """Who changed something in these days."""
    entries = AuditEntry.objects.filter(at__gte=days.start, at__lt=days.end)
    return list(entries.order_by("actor").values_list("actor", flat=True).distinct()[:ACTORS_SHOWN])


def every_entry(wanted: AuditFilter, days: Days) -> Iterator[AuditEntry]:
    """Oldest first, read in pieces."""
    yield from matching(wanted, days).order_by("at", "id").iterator(chunk_size=_CHUNK)
