"""The log of health events: filtered, newest first, with the names of their subjects. It is never changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet
from django.http import QueryDict

from catalog.models import Channel, Supply
from health.circuit import Cause, State, Subject
from health.models import HealthEvent

PAGE_SIZE: Final = 50


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What the address asks for; values that don't exist are dropped. `older` is an event's public id."""

    channel: str = ""  # slug: its own events and those of its supplies
    to: str = ""
    cause: str = ""
    by: str = ""  # person, rule
    older: str = ""

    @property
    def words(self) -> int:
        return sum(bool(each) for each in (self.channel, self.to, self.cause, self.by))


@dataclass(frozen=True, slots=True)
class EventLine:
    event: HealthEvent
    name: str  # of the channel or supply


@dataclass(frozen=True, slots=True)
class EventPage:
    lines: Sequence[EventLine]
    older: str  # the cursor of the next page, or ""


def parse_event_filter(query: QueryDict) -> EventFilter:
    def known(name: str, values: Iterable[str]) -> str:
        value = query.get(name, "")
        return value if value in values else ""

    channel = query.get("channel", "")
    return EventFilter(
        channel=channel if Channel.objects.filter(slug=channel).exists() else "",
        to=known("to", [state.value for state in State]),
        cause=known("cause", [cause.value for cause in Cause]),
        by=known("by", ("person", "rule")),
        older=query.get("older", ""),
    )


def event_page(wanted: EventFilter) -> EventPage:
    rows = _matching(wanted)
    if wanted.older:
        last = HealthEvent.objects.filter(public_id=wanted.older).values_list("pk", flat=True).first()
        rows = rows.filter(pk__lt=last or 0)
    found = list(rows.order_by("-id")[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    return EventPage(named(shown), shown[-1].public_id if len(found) > PAGE_SIZE else "")


def newer_count(wanted: EventFilter, newest: str) -> int:
    """How many came after the event `newest`, at most a page."""
    first = HealthEvent.objects.filter(public_id=newest).values_list("pk", flat=True).first()
    rows = _matching(wanted).filter(pk__gt=first or 0)
    return rows.order_by("id")[:PAGE_SIZE].count()


def _matching(wanted: EventFilter) -> QuerySet[HealthEvent]:
    rows = HealthEvent.objects.all()
    if wanted.channel:
        channel = Channel.objects.get(slug=wanted.channel)
        supplies = list(channel.supplies.values_list("pk", flat=True))
        rows = rows.filter(
            Q(subject=Subject.CHANNEL, subject_id=channel.pk)
            | Q(subject=Subject.SUPPLY, subject_id__in=supplies)
        )
    if wanted.to:
        rows = rows.filter(to_state=wanted.to)
    if wanted.cause:
        rows = rows.filter(cause=wanted.cause)
    if wanted.by == "person":
        rows = rows.exclude(actor="")
    elif wanted.by == "rule":
        rows = rows.filter(actor="")
    return rows


def named(events: Sequence[HealthEvent]) -> list[EventLine]:
    """Two queries for all names."""
    names = {
        Subject.CHANNEL: _names(Channel.objects.all(), events, Subject.CHANNEL),
        Subject.SUPPLY: _names(Supply.objects.all(), events, Subject.SUPPLY),
    }
    return [EventLine(each, names[Subject(each.subject)].get(each.subject_id, "")) for each in events]


def _names(
    rows: QuerySet[Channel] | QuerySet[Supply], events: Iterable[HealthEvent], subject: Subject
) -> Mapping[int, str]:
    ids = {each.subject_id for each in events if each.subject == subject}
    return dict(rows.filter(pk__in=ids).values_list("pk", "slug"))


def find_event(public_id: str) -> EventLine | None:
    found = HealthEvent.objects.filter(public_id=public_id).first()
    return named([found])[0] if found else None
