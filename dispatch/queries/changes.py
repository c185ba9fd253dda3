"""What changed lately and may explain what is seen now: changes by people and by circuits, on one line."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from catalog.models import AuditEntry
from dispatch.queries.audit_list import names_of
from dispatch.queries.health_log import EventLine, listed, named
from health.models import HealthEvent

DAY: Final = timedelta(days=1)
SHOWN: Final = 60
ACTIONS: Final = (
    "publish model",
    "withdraw model",
    "save model",
    "start maintenance",
    "end maintenance",
    "publish price",
    "schedule price",
    "cancel price",
    "publish capability",
    "change limit",
    "set rate",
)


@dataclass(frozen=True, slots=True)
class Change:
    """Either an entry of the audit, about `name`, or an event of a circuit."""

    at: datetime
    entry: AuditEntry | None = None
    name: str = ""
    event: EventLine | None = None

    @property
    def why(self) -> str:
        """What the person gave as the reason of an entry."""
        after = (self.entry.after if self.entry else None) or {}
        return str(after.get("reason") or after.get("why") or "")

    @property
    def key(self) -> str:
        return self.event.event.public_id if self.event else f"entry-{self.entry.pk if self.entry else 0}"


@dataclass(frozen=True)
class Changes:
    """The newest first. `is_cut`: there were more than SHOWN."""

    changes: Sequence[Change]
    is_cut: bool


def changes_since(since: datetime) -> Changes:
    """Five queries."""
    entries = AuditEntry.objects.filter(at__gt=since, action__in=ACTIONS).defer("before")
    newest = list(entries.order_by("-at", "-id")[: SHOWN + 1])
    events = list(listed(HealthEvent.objects.order_by("-id"))[: SHOWN + 1])
    lines = named([each for each in events if each.at > since])
    names = names_of(newest)
    found = [Change(each.at, entry=each, name=names.get(each.subject, "")) for each in newest]
    found += [Change(each.event.at, event=each) for each in lines]
    found.sort(key=lambda change: change.at, reverse=True)
    return Changes(found[:SHOWN], len(found) > SHOWN)
