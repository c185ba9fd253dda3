"""Health: the board of channels and their supplies, worst first, and the log that nobody changes."""

from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import Channel
from dispatch.queries import health_log
from dispatch.queries.health_log import EventFilter
from dispatch.queries.places import ChannelNow, channels_now, worst_first
from dispatch.queries.success import success_of
from dispatch.views import vocabulary as words
from dispatch.views.access import requires
from dispatch.views.rows import as_shown, rows_on_screen
from dispatch.views.shell import is_beat, page


@require_safe
@requires("read")
def health(request: HttpRequest) -> HttpResponse:
    """Beats keep the order that is on the screen: only a refresh moves a row."""
    now = timezone.now()
    board: Sequence[ChannelNow] = worst_first(channels_now())
    if is_beat(request):
        board = as_shown(board, request, lambda each: each.row.slug)
    success = success_of([each.row.pk for channel in board for each in channel.supplies], now)
    return page(request, "console/health/board.html", {"board": board, "success": success}, now)


@require_safe
@requires("read")
def events(request: HttpRequest) -> HttpResponse:
    now, wanted = timezone.now(), health_log.parse_event_filter(request.GET)
    if is_beat(request):
        newest = rows_on_screen(request)[:1]
        arrived = health_log.newer_count(wanted, newest[0]) if newest and not wanted.older else 0
        return page(request, "console/health/events.html", {"arrived": arrived}, now)
    shown = health_log.event_page(wanted)
    context = {
        "wanted": wanted,
        "lines": shown.lines,
        "older": _query(request.GET, older=shown.older) if shown.older else "",
        "active": _active(request.GET, wanted),
        "channels": list(Channel.objects.order_by("slug").values_list("slug", flat=True)),
        "states": words.HEALTH.items(),
        "causes": words.CAUSES.items(),
    }
    return page(request, "console/health/events.html", context, now)


@require_safe
@requires("read")
def event(request: HttpRequest, event_id: str) -> HttpResponse:
    line = health_log.find_event(event_id)
    if line is None:
        raise Http404
    return page(request, "console/health/event.html", {"line": line, "event": line.event}, timezone.now())


def _active(query: QueryDict, wanted: EventFilter) -> list[tuple[str, str]]:
    """Each filter in words, with the query string that is without it."""
    texts = {
        "channel": wanted.channel,
        "to": words.word(words.HEALTH, wanted.to) if wanted.to else "",
        "cause": words.word(words.CAUSES, wanted.cause) if wanted.cause else "",
        "by": words.word(words.CAUSED_BY, wanted.by) if wanted.by else "",
    }
    return [(text, _query(query, **{name: ""})) for name, text in texts.items() if text]


def _query(query: QueryDict, **changes: str) -> str:
    """The query string with changes; any change drops the cursor, unless it is the change."""
    copy = query.copy()
    copy.pop("older", None)
    for name, value in changes.items():
        copy.pop(name, None)
        if value:
            copy[name] = value
    return copy.urlencode()
