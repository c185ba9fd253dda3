"""The revisions of a public model: who saved each, why, and when it was in production."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from catalog.models import AuditEntry, ModelRevision, PublicModel

LIMIT = 200
_ACTIONS = ("publish model", "withdraw model", "save model")


@dataclass(frozen=True, slots=True)
class Span:
    """In production from `start` to `end`; None: it still is."""

    start: datetime
    by: str
    end: datetime | None


@dataclass(frozen=True, slots=True)
class RevisionLine:
    revision: ModelRevision
    live: Sequence[Span]


def revision_lines(model: PublicModel) -> list[RevisionLine]:
    """Newest first; two queries."""
    rows = list(model.revisions.defer("document").order_by("-number")[:LIMIT])
    spans = _spans(model, rows[-1].saved_at) if rows else {}
    return [RevisionLine(row, spans.get(row.number, ())) for row in rows]


def _spans(model: PublicModel, since: datetime) -> Mapping[int, Sequence[Span]]:
    """By revision: each publication lasts until the next save, withdrawal or publication."""
    entries = AuditEntry.objects.filter(
        subject=f"model:{model.public_id}", action__in=_ACTIONS, at__gte=since
    )
    ordered = list(entries.order_by("at", "id").defer("before"))
    ends = [*(entry.at for entry in ordered[1:]), None]
    spans: dict[int, list[Span]] = defaultdict(list)
    for entry, end in zip(ordered, ends, strict=True):
        if entry.action == "publish model" and entry.after:
            spans[entry.after["published_revision"]].append(Span(entry.at, entry.actor, end))
    return spans
