"""Keeps a filtered list under a name, and forgets it."""

from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction

from dispatch.models import SavedView

MOST_VIEWS: Final = 50  # of one person and page


class TooManyViews(Exception):
    """The person has to forget one first."""


@transaction.atomic
def save_view(
    user: User, page: str, name: str, query: str, now: datetime, *, is_shared: bool = False
) -> SavedView:
    """One of the same name is replaced. Raises TooManyViews."""
    own = SavedView.objects.select_for_update().filter(user=user, page=page)
    if not own.filter(name=name).exists() and len(own.values_list("pk")) >= MOST_VIEWS:
        raise TooManyViews(page)
    values = {"query": query, "is_shared": is_shared, "saved_at": now}
    view, _created = SavedView.objects.update_or_create(user=user, page=page, name=name, defaults=values)
    return view


def forget_view(user: User, public_id: str) -> SavedView | None:
    """None: it is gone already, or somebody else's."""
    view = SavedView.objects.filter(user=user, public_id=public_id).first()
    if view is not None:
        view.delete()
    return view
