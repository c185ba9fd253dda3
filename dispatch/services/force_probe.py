"""An operator has an open circuit tried before its cooldown is over: by one attempt, as after it."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor
from dispatch.services.advance import wake_dispatcher
from health.circuit import Subject
from health.services.switch import probe_now


@transaction.atomic
def force_probe(
    subject: Subject, subject_id: int, reason: str, *, account_passes: bool, actor: Actor, now: datetime
) -> str:
    """Empty when one attempt may try it now; else a code for why not, and nothing was changed.

    `account_passes`: what `dispatch.services.check_accounts.account_passes` said, outside of any transaction:
    a customer's attempt is never spent on a key that is known to be bad."""
    if not account_passes:
        return "account_refused"
    if probe_now(subject, subject_id, actor, reason, now) is None:
        return "not_open"
    wake_dispatcher()
    return ""
