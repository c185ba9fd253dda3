"""An operator takes an uncertain attempt for half an hour, so that a second one does not decide it too."""

from datetime import datetime, timedelta

from django.db import transaction

from catalog.audit import Actor, Change, record
from dispatch.errors import TakenByAnother
from dispatch.models import Attempt, DeskClaim

TAKEN_FOR = timedelta(minutes=30)


def take_attempt(attempt: Attempt, actor: Actor, now: datetime, take_over: bool = False) -> DeskClaim:
    """The claim. Raises TakenByAnother while somebody else holds it, unless `take_over` says to."""
    with transaction.atomic():
        claim = held_claim(attempt, now)
        if claim is not None and claim.operator != actor.name and not take_over:
            raise TakenByAnother(claim.operator, claim.until_at)
        before = None if claim is None else {"operator": claim.operator}
        claim, _ = DeskClaim.objects.update_or_create(
            attempt=attempt, defaults={"operator": actor.name, "until_at": now + TAKEN_FOR}
        )
        change = Change("take attempt", f"attempt:{attempt.public_id}", before, {"operator": actor.name})
        record(actor, change, now)
    return claim


def held_claim(attempt: Attempt, now: datetime) -> DeskClaim | None:
    """The claim that still holds, locked until the transaction ends."""
    return DeskClaim.objects.select_for_update().filter(attempt=attempt, until_at__gt=now).first()
