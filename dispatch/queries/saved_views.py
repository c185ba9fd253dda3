"""The views of one list that a person may open: their own, and those that others share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Q

from dispatch.models import SavedView

# The lists that have views: the names of their URLs.
PAGES: Final = ("alerts", "jobs", "refusals", "degraded", "ledger", "audit")
SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ViewLine:
    view: SavedView
    is_own: bool
    is_here: bool  # the list shows it now


def views_of(user: User, page: str, query: str) -> Sequence[ViewLine]:
    """By name; one query. `query`: what the list shows now."""
    found = SavedView.objects.filter(Q(user=user) | Q(is_shared=True), page=page)
    rows = found.select_related("user").order_by("name", "pk")[:SHOWN]
    return [ViewLine(view, view.user_id == user.pk, view.query == query) for view in rows]
