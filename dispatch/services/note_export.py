"""What leaves the console with customers' names in it is remembered."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from catalog.audit import Actor, Change, record


def note_export(told: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Jobs were exported; `told`: which, and how many."""
    record(actor, Change("export jobs", "installation:jobs", after=told), now)
