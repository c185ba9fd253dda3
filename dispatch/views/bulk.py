"""All rows that a filter matches, acted on at once: the filter, the moment and the count that a person saw
are signed on the page that confirms it, and nothing happens where they do not agree any more."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest, QueryDict

from dispatch.views.confirm import Confirmed, confirm_token, confirmed
from dispatch.views.listing import query_without

AS_OF: Final = "as_of"
TICKED: Final = "ticked"
SAMPLES: Final = 10
_EVERYTHING: Final = "matching"


@dataclass(frozen=True, slots=True)
class Bulk:
    """`query` is the filter alone, in one spelling; rows that came after `as_of` are not in `count`."""

    query: str
    as_of: datetime
    count: int

    @property
    def address(self) -> str:
        """The query string under which the confirming page says the same however often it is loaded."""
        return "&".join(filter(None, (self.query, with_moment(self.as_of))))

    @property
    def _mark(self) -> int:
        """The three as one number, for a token's version."""
        told = f"{self.query}\n{self.as_of.isoformat()}\n{self.count}"
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:6])


def filter_of(query: QueryDict) -> str:
    return query_without(query, AS_OF, TICKED, "size")


def moment_of(query: QueryDict, now: datetime) -> datetime:
    """The moment that the address names; now where it names none, and never later."""
    try:
        found = datetime.fromisoformat(query.get(AS_OF, ""))
    except ValueError:
        return now
    return min(found, now) if found.tzinfo else now


def with_moment(now: datetime) -> str:
    written = QueryDict(mutable=True)
    written[AS_OF] = now.isoformat()
    return written.urlencode()


def ticked_of(query: QueryDict, most: int) -> Sequence[str]:
    return list(dict.fromkeys(each[:40] for each in query.getlist(TICKED) if each))[:most]


def bulk_token(request: HttpRequest, action: str, bulk: Bulk) -> str:
    return confirm_token(request, action, _EVERYTHING, bulk._mark)


def confirmed_bulk(request: HttpRequest, action: str, bulk: Bulk) -> Confirmed | None:
    """None: what was confirmed is not `bulk`. Raises PermissionDenied for a form from no confirming page."""
    form = confirmed(request, action, _EVERYTHING)
    return form if form.version == bulk._mark else None
