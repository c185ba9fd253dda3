"""The log of health events: filtered, newest first, with the names of their subjects. It is never changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import F, Q, QuerySet
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
    successes_before: int = 0  # of the recovery that it met; after it, the event itself says


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
    rows = listed(HealthEvent.objects.all())
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


def listed(events: QuerySet[HealthEvent]) -> QuerySet[HealthEvent]:
    """For a list: of the two documents of each event, only how far the recovery was before it."""
    return events.defer("before", "parameters").annotate(successes_before=F("before__recovery_successes"))


def named(events: Sequence[HealthEvent]) -> list[EventLine]:
    """Two queries for all names; `events` come from `listed`, or are whole."""
    names = {
        Subject.CHANNEL: _names(Channel.objects.all(), events, Subject.CHANNEL),
        Subject.SUPPLY: _names(Supply.objects.all(), events, Subject.SUPPLY),
    }
    return [
        EventLine(each, names[Subject(each.subject)].get(each.subject_id, ""), _successes_before(each))
        for each in events
    ]


def _successes_before(event: HealthEvent) -> int:
    if "before" in event.get_deferred_fields():
        return getattr(event, "successes_before", None) or 0
    return event.before.get("recovery_successes") or 0


def _names(
    rows: QuerySet[Channel] | QuerySet[Supply], events: Iterable[HealthEvent], subject: Subject
) -> Mapping[int, str]:
    ids = {each.subject_id for each in events if each.subject == subject}
    return dict(rows.filter(pk__in=ids).values_list("pk", "slug"))


def find_event(public_id: str) -> EventLine | None:
    found = HealthEvent.objects.filter(public_id=public_id).first()
    return named([found])[0] if found else None
