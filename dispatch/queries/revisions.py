"""The revisions of a public model: who saved each, why, and when it was in production."""

from collections.abc import Sequence
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
    spans = _spans(model)
    return [RevisionLine(row, [span for number, span in spans if number == row.number]) for row in rows]


def _spans(model: PublicModel) -> list[tuple[int, Span]]:
    """By revision: each publication lasts until the next save, withdrawal or publication."""
    entries = AuditEntry.objects.filter(subject=f"model:{model.public_id}", action__in=_ACTIONS)
    ordered = list(entries.order_by("at", "id").defer("before"))
    ends = [*(entry.at for entry in ordered[1:]), None]
    return [
        (entry.after["published_revision"], Span(entry.at, entry.actor, end))
        for entry, end in zip(ordered, ends, strict=True)
        if entry.action == "publish model" and entry.after
    ]
