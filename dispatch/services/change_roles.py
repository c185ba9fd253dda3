"""An administrator changes what somebody may do; that person's sessions end."""

from collections.abc import Collection
from datetime import datetime

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction

from catalog.audit import Actor, Change, record

ADMIN = "admin"


class LastAdmin(Exception):
    """Without this one nobody could give out roles."""


@transaction.atomic
def change_roles(user: User, wished: Collection[str], *, actor: Actor, now: datetime) -> int | None:
    """How many sessions ended; None where nothing differs. `wished`: names of groups that exist. Raises
    LastAdmin. A superuser stays one: that is nothing that the console gives or takes."""
    # The group's row orders two changes: of two admins, each cannot take the other's role at once.
    admins = Group.objects.select_for_update().get(name=ADMIN)
    before = set(user.groups.values_list("name", flat=True))
    if before == set(wished):
        return None
    loses_admin = ADMIN in before and ADMIN not in wished
    others = admins.user_set.filter(is_active=True).exclude(pk=user.pk).exists()
    if loses_admin and not others and not User.objects.filter(is_superuser=True, is_active=True).exists():
        raise LastAdmin
    user.groups.set(Group.objects.filter(name__in=wished))
    ended = end_sessions(user, now)
    change = Change(
        "change roles",
        f"user:{user.get_username()}",
        {"roles": sorted(before)},
        {"roles": sorted(wished), "sessions_ended": ended},
    )
    record(actor, change, now)
    return ended


def end_sessions(user: User, now: datetime) -> int:
    """Whose a session is stands inside of it: the live ones are read one by one; there are a handful."""
    own = [
        session.pk
        for session in Session.objects.filter(expire_date__gt=now)
        if session.get_decoded().get("_auth_user_id") == str(user.pk)
    ]
    Session.objects.filter(pk__in=own).delete()
    return len(own)
