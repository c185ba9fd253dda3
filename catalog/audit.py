"""The one door to audit entries: who changed what, from where, before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.models import AuditEntry


@dataclass(frozen=True, slots=True)
class Actor:
    """A user's name, or e.g. "command:catalogue import"; `source` is console, command or an address;
    `request_id` is that of the request that asked for it, "" where there was none."""

    name: str
    source: str
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """`subject` is `kind:public id`; the values are plain JSON and never a secret (of a credential: its
    reference and last four characters)."""

    action: str
    subject: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


def record(actor: Actor, change: Change, now: datetime) -> AuditEntry:
    """Writes one entry."""
    return AuditEntry.objects.create(
        at=now,
        actor=actor.name,
        source=actor.source,
        request_id=actor.request_id,
        action=change.action,
        subject=change.subject,
        before=change.before,
        after=change.after,
    )
