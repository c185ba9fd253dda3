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


def record(
    actor: str,
    source: str,
    action: str,
    subject: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    now: datetime,
    request_id: str = "",
) -> AuditEntry:
    """Writes one entry. `subject` is `kind:public id`; the values are plain JSON and never a secret
    (of a credential: its reference and last four characters)."""
    return AuditEntry.objects.create(
        at=now,
        actor=actor,
        source=source,
        action=action,
        subject=subject,
        before=before,
        after=after,
        request_id=request_id,
    )
