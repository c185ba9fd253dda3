"""`POST /callbacks/<provider>/<place>/`: what providers say unasked. Answers at once; others do the work.

Who can't say a place of ours is let in at a pace of his own, so that he keeps no provider waiting, and a
body is read only when its announced size is small."""

from time import monotonic
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.timezone import now
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from catalog.callback_addresses import channel_called
from dispatch.callbacks.pace import Pace
from dispatch.services.take_callback import Called, Taken, reject_stranger, take_callback

MOST_BODY_BYTES: Final = 256 * 1024
_OF_CHANNELS = Pace(burst=400, per_second=40)
_OF_STRANGERS = Pace(burst=20, per_second=0.5)
_STATUS = {Taken.STORED: 204, Taken.KNOWN: 204, Taken.REJECTED: 401, Taken.UNREADABLE: 503}


@csrf_exempt
@require_POST
def callback(request: HttpRequest, provider: str, place: str) -> HttpResponse:
    channel = channel_called(place)
    pace, caller = (
        (_OF_CHANNELS, channel) if channel else (_OF_STRANGERS, request.META.get("REMOTE_ADDR", ""))
    )
    if not pace.admits(caller, monotonic()):
        return HttpResponse(status=429, headers={"Retry-After": "2"})
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BODY_BYTES:
        return HttpResponse(status=413)
    if channel is None:
        reject_stranger(provider, request.body, now())
        return HttpResponse(status=401)
    query = {name: str(request.GET[name]) for name in request.GET}
    headers = {name.casefold(): value for name, value in request.headers.items()}
    taken = take_callback(Called(provider, channel, headers, query, request.body), now())
    return HttpResponse(status=_STATUS[taken])
