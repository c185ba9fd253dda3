"""Signing in and out, and the theme that a browser remembers."""

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dispatch.views.shell import THEME_COOKIE, THEMES

_A_YEAR_S = 365 * 86_400

login = LoginView.as_view(template_name="registration/login.html")
logout = LogoutView.as_view()


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Open to anyone: it changes only a cookie."""
    response = HttpResponseRedirect(local_next(request, "overview"))
    theme = request.POST.get("theme")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=_A_YEAR_S, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE
        )
    return response


def local_next(request: HttpRequest, default: str, *args: str) -> str:
    """The address to return to, when it is one of ours; else the page `default`."""
    wanted = request.POST.get("next", "")
    ours = wanted.startswith("/") and url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else resolve_url(default, *args)
