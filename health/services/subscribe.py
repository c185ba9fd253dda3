"""A person chooses of which alerts mail comes to them; the installation's own targets stay as they are."""

from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction

from catalog.audit import Actor, Change, record
from health.models import AlertSubscription

NONE: Final = "none"
CRITICAL: Final = "critical"
ALL: Final = "all"
LEVELS: Final = (NONE, CRITICAL, ALL)


def chosen_by(user: User) -> tuple[str, str]:
    """One of LEVELS, and the address; none and the account's own address where nothing was chosen."""
    found = AlertSubscription.objects.filter(user=user).first()
    if found is None:
        return NONE, user.email
    return CRITICAL if found.only_critical else ALL, found.address


@transaction.atomic
def subscribe(user: User, level: str, address: str, *, actor: Actor, now: datetime) -> bool:
    """From the next alert that opens. `address` is a valid one, unless `level` is none. False where nothing
    differs."""
    before = chosen_by(User.objects.select_for_update().get(pk=user.pk))
    if before == (level, address) or before[0] == level == NONE:
        return False
    if level == NONE:
        AlertSubscription.objects.filter(user=user).delete()
    else:
        values = {"address": address, "only_critical": level == CRITICAL}
        AlertSubscription.objects.update_or_create(user=user, defaults=values)
    change = Change(
        "choose notifications", f"user:{user.get_username()}", _told(*before), _told(level, address)
    )
    record(actor, change, now)
    return True


def _told(level: str, address: str) -> dict[str, str]:
    return {"alerts": level} if level == NONE else {"alerts": level, "address": address}
