"""Settings: a person's own, what the team has set, and for administrators who may do what."""

from typing import Any, Final

from django.conf import settings as installation
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dispatch.queries.health_policies import differing_policies, own_policy
from dispatch.services.answer_once import answer_once
from dispatch.services.change_roles import LastAdmin, change_roles
from dispatch.views.access import ROLES, actor_of, person, requires, roles_of
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.notifications import Choice, notifications_of, typed_in
from dispatch.views.settings_words import TEAM
from dispatch.views.shell import (
    DENSITIES,
    DENSITY_COOKIE,
    KEYS_COOKIE,
    THEME_COOKIE,
    THEMES,
    density_of,
    keys_of,
    page,
)
from dispatch.views.zones import OFFERED, ZONE_COOKIE, personal_zone, reporting_zone, zone_named
from health.parameters import NAMES, parse_parameters
from health.services.subscribe import subscribe

_PAGE: Final = "console/settings.html"
_ROLES: Final = "change roles"
_A_YEAR_S: Final = 365 * 86_400
_USERS_SHOWN: Final = 500


@require_safe
@requires("read")
def settings(request: HttpRequest) -> HttpResponse:
    return page(request, _PAGE, _context(request), timezone.now())


def _context(request: HttpRequest, typed: Choice | None = None) -> dict[str, Any]:
    zone = personal_zone(request)
    own = zone.key if zone else installation.TIME_ZONE
    return {
        "zone": own,
        "zones": OFFERED if own in OFFERED else (own, *OFFERED),
        "reporting": str(reporting_zone()),
        "density": density_of(request),
        "keys": keys_of(request),
        "team": [(words, names, _values(names)) for words, names in TEAM],
        "health": _health(),
        "users": _users() if "admin" in roles_of(request.user) else (),
        "own_roles": [role for role in ROLES if role in roles_of(request.user)],
        "notifications": notifications_of(person(request), typed),
    }


def _values(names: tuple[tuple[str, Any], ...]) -> list[tuple[str, Any, Any]]:
    """Name of the variable, what it is, and its value."""
    return [(f"FRAMEYARD_{name}", words, getattr(installation, name)) for name, words in names]


def _health() -> dict[str, Any]:
    """The installation's parameters of the circuits, and where channels and supplies differ."""
    own = own_policy()
    changed = own.parameters if own else {}
    parameters = parse_parameters(changed)
    values = [(name, getattr(parameters, name), name in changed) for name in NAMES]
    return {"policy": own, "values": values, "others": differing_policies()}


def _users() -> list[tuple[User, list[str]]]:
    users = User.objects.prefetch_related("groups").order_by("username")[:_USERS_SHOWN]
    return [(user, [role for role in ROLES if role in {g.name for g in user.groups.all()}]) for user in users]


@require_POST
@requires("read")
def save_settings(request: HttpRequest) -> HttpResponse:
    """A person's own: kept by the browser, so that signing in elsewhere begins afresh."""
    response = redirect("settings")
    theme, density = request.POST.get("theme", ""), request.POST.get("density", "")
    language, keys = request.POST.get("language", ""), request.POST.get("keys", "")
    zone = zone_named(request.POST.get("zone", ""))
    chosen = {
        THEME_COOKIE: theme if theme in THEMES else "",
        DENSITY_COOKIE: density if density in DENSITIES else "",
        KEYS_COOKIE: keys if keys in ("on", "off") else "",
        installation.LANGUAGE_COOKIE_NAME: language if check_for_language(language) else "",
        ZONE_COOKIE: zone.key if zone else "",
    }
    for name, value in chosen.items():
        if value:
            secure = installation.SESSION_COOKIE_SECURE
            response.set_cookie(name, value, max_age=_A_YEAR_S, samesite="Lax", secure=secure)
    messages.info(request, _("Saved for this browser."))
    return response


@require_POST
@requires("read")
def save_notifications(request: HttpRequest) -> HttpResponse:
    """A person's own as well, but kept with the account: mail finds them wherever they sign in."""
    typed, now = typed_in(request.POST), timezone.now()
    if typed.fault:
        return render(request, _PAGE, {**_context(request, typed), "as_of": now}, status=422)
    changed = subscribe(person(request), typed.level, typed.address, actor=actor_of(request), now=now)
    messages.info(request, _("Saved with your account.") if changed else _("Nothing differs."))
    return redirect(f"{reverse('settings')}#notifications")


@require_safe
@requires("administer")
def user(request: HttpRequest, user_id: int) -> HttpResponse:
    return _user_page(request, _found(user_id))


@require_POST
@requires("administer")
def save_roles(request: HttpRequest, user_id: int) -> HttpResponse:
    row = _found(user_id)
    form = confirmed(request, _ROLES, str(row.pk))
    wished = [role for role in ROLES if role in request.POST.getlist("role")]
    actor, now = actor_of(request), timezone.now()

    def change() -> str:
        ended = change_roles(row, wished, actor=actor, now=now)
        said = (
            _("Nothing differs.") if ended is None else _("Saved. Sessions that ended: %(n)s.") % {"n": ended}
        )
        # Whoever changes his own roles is signed out by that, and reads this after signing in again.
        messages.info(request, said)
        return f"{reverse('settings')}#users"

    try:
        return redirect(answer_once(form.key, actor.name, now, change) or reverse("settings"))
    except LastAdmin:
        return _user_page(request, row, status=409)


def _user_page(request: HttpRequest, row: User, status: int = 200) -> HttpResponse:
    context = {
        "person": row,
        "roles": ROLES,
        "held": list(row.groups.values_list("name", flat=True)),
        "token": confirm_token(request, _ROLES, str(row.pk)),
        "last_admin": status != 200,
    }
    return render(request, "console/user.html", context, status=status)


def _found(user_id: int) -> User:
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise Http404
    return found
