"""Pages of the lists that customers read."""

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """A page can't shift under a reader."""

    ordering = ("-created_at", "-id")
    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Raises NotFound for one that no page of ours gave out."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and not _is_moment(str(cursor.position)):
            raise NotFound(self.invalid_cursor_message)
        return cursor


def _is_moment(said: str) -> bool:
    try:
        moment = parse_datetime(said)
    except ValueError:
        return False
    return moment is not None and moment.tzinfo is not None
