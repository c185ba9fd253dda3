"""Who may open what: the five roles are Django groups, and every view names the one it needs."""

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from catalog.audit import record

ROLES = ("viewer", "operator", "publisher", "finance", "admin")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

type View = Callable[..., HttpResponseBase]


def roles_of(user: User | AnonymousUser) -> frozenset[str]:
    """The roles a signed-in person has. Every role reads; an admin has them all, since he gives them out.

    One query a request: the answer is kept on the user."""
    known = getattr(user, "_console_roles", None)
    if known is None:
        known = _roles(user)
        user._console_roles = known  # type: ignore[union-attr]
    return known


def _roles(user: User | AnonymousUser) -> frozenset[str]:
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset(ROLES)
    named = set(user.groups.filter(name__in=ROLES).values_list("name", flat=True))  # type: ignore[union-attr]
    if "admin" in named:
        return frozenset(ROLES)
    return frozenset(named | {"viewer"}) if named else frozenset()


def role_required(role: str) -> Callable[[View], View]:
    """The view is for people with `role`; others get 403, and a refused change is audited.

    Somebody signed out is sent to the login page (a live region's request is answered with 401 instead)."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if role not in roles_of(request.user):
                _audit_refusal(request, role)
                raise PermissionDenied(role)
            response = view(request, *args, **kwargs)
            if isinstance(response, HttpResponse):
                response.headers.setdefault("Cache-Control", "no-store")
            return response

        guarded.needs_role = role  # type: ignore[attr-defined]
        return guarded

    return decorate


def _audit_refusal(request: HttpRequest, role: str) -> None:
    if request.method in _SAFE_METHODS:
        return
    record(
        request.user.get_username(),
        "console",
        "refused change",
        f"address:{request.path}"[:120],
        None,
        {"method": request.method, "needs": role},
        timezone.now(),
    )
