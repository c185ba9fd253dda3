"""Remembers that somebody tried to change what their roles do not let them."""

from datetime import datetime

from catalog.audit import Actor, Change, record

_MOST = 120  # characters that the audit keeps of an address


def note_refused_change(address: str, method: str, needs: str, *, actor: Actor, now: datetime) -> None:
    """`needs`: the action that their roles do not allow."""
    subject = f"address:{address}"[:_MOST]
    record(actor, Change("refused change", subject, after={"method": method, "needs": needs}), now)
