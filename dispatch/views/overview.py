"""The first page: is traffic flowing, and what needs a person."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dispatch.queries import needs
from dispatch.views.access import requires
from dispatch.views.shell import page


@require_safe
@requires("read")
def overview(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    return page(request, "console/overview.html", {"overview": needs.overview(now)}, now)
