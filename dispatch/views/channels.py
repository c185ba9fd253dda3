"""Channels: the accounts at providers, how each stands, and what moves it on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.models import Channel, Supply
from catalog.providers.registry import ADAPTERS
from dispatch.queries.channel_story import ChannelStory, channel_past, channel_story
from dispatch.queries.fullness import fullness
from dispatch.queries.health_log import named
from dispatch.queries.places import ChannelNow, Circuit, channels_now
from dispatch.views.access import requires
from dispatch.views.panels import panel
from dispatch.views.rows import as_shown
from dispatch.views.shell import is_beat, page
from health.circuit import SUCCESSES_TO_RECOVER, State

_ROAD: Final = (("probing", 0), ("recovering", 2), ("recovering", 3), ("recovering", 4), ("healthy", 5))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the way back; `needs` successes bring it there."""

    state: str
    needs: int
    is_here: bool
    is_done: bool


@require_safe
@requires("read")
def channels(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    with_retired = request.GET.get("retired") == "1"
    found: Sequence[ChannelNow] = channels_now(with_retired=with_retired)
    if is_beat(request):
        found = as_shown(found, request, lambda each: each.row.slug)
    context = {"channels": found, "with_retired": with_retired}
    return page(request, "console/channels/list.html", context, now)


@require_safe
@requires("read")
def channel(request: HttpRequest, slug: str) -> HttpResponse:
    now = timezone.now()
    story = found_channel(slug)
    context = {
        "story": story,
        "channel": story.now,
        "row": story.row,
        "road": road_of(story.now.circuit),
        "fullness": panel("fullness", lambda: fullness([story.now], [], now), now),
        "successes_needed": SUCCESSES_TO_RECOVER,
        **({} if is_beat(request) else _around(story, now)),
    }
    return page(request, "console/channels/channel.html", context, now)


def _around(story: ChannelStory, now: datetime) -> dict[str, Any]:
    past, expires = channel_past(story.now, now), story.row.credential_expires_on
    return {
        "past": past,
        "event_lines": named(past.events),
        "expires_in_days": (expires - now.date()).days if expires else None,
        "warn_days": settings.ALERT_CREDENTIAL_DAYS,
        "adapter": ADAPTERS.get(story.row.provider),
        "can_probe": _is_open(story.row) or any(_is_open(each.row) for each in story.now.supplies),
    }


def _is_open(row: Channel | Supply) -> bool:
    """Its own circuit, whatever the channel's or an administrator's word."""
    health = getattr(row, "health", None)
    return health is not None and health.state == State.CIRCUIT_OPEN


def found_channel(slug: str) -> ChannelStory:
    story = channel_story(slug)
    if story is None:
        raise Http404
    return story


def road_of(circuit: Circuit) -> list[Step]:
    """The way back from an opening or a switch, or [] where it never left."""
    if circuit.state in ("healthy", "degraded"):
        return []
    reached = circuit.recovery_successes if circuit.state in ("probing", "recovering") else -1
    here = max((index for index, (_, needs) in enumerate(_ROAD) if needs <= reached), default=-1)
    return [
        Step(state, needs, is_here=index == here, is_done=index < here)
        for index, (state, needs) in enumerate(_ROAD)
    ]
