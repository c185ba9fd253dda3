"""Who may do what: one table of roles and actions, and the decorator by which every view names its action."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Final, NoReturn

from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from catalog.audit import Actor
from dispatch.services.note_refused_change import note_refused_change

ROLES: Final = ("viewer", "operator", "publisher", "finance", "admin")
# The roles are Django groups. An admin may do everything, since he gives the roles out.
MATRIX: Final[Mapping[str, frozenset[str]]] = {
    "read": frozenset(ROLES),
    "acknowledge": frozenset({"operator", "admin"}),
    "edit": frozenset({"operator", "admin"}),  # models, bindings, policies, supplies, channels
    "settle": frozenset({"operator", "admin"}),  # uncertain attempts, refusals
    "stop": frozenset({"operator", "admin"}),  # a customer's job
    "try": frozenset({"operator", "admin"}),  # a supply by a paid call, a circuit before its time
    "publish": frozenset({"publisher", "admin"}),
    "withdraw": frozenset({"operator", "publisher", "admin"}),
    "price": frozenset({"finance", "admin"}),  # cost rules, bills
    "administer": frozenset({"admin"}),  # users, credentials, keys
}
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

type View = Callable[..., HttpResponseBase]


def roles_of(user: User | AnonymousUser) -> frozenset[str]:
    """The roles a signed-in person has. Every role reads.

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
    return frozenset(user.groups.filter(name__in=ROLES).values_list("name", flat=True))  # type: ignore[union-attr]


def actions_of(user: User | AnonymousUser) -> frozenset[str]:
    """What somebody may do: names of MATRIX."""
    roles = roles_of(user)
    return frozenset(action for action, allowed in MATRIX.items() if roles & allowed)


def person(request: HttpRequest) -> User:
    """The signed-in person of a view that `requires` something: it has let nobody else in."""
    assert isinstance(request.user, User)  # noqa: S101
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """Whom the audit names for what this request changes."""
    return Actor(request.user.get_username(), "console", getattr(request, "request_id", ""))


def requires(action: str) -> Callable[[View], View]:
    """The view is for those whose roles allow `action`; others get 403, and a refused change is audited.

    Somebody signed out is sent to the login page (a live region's request is answered with 401 instead)."""
    allowed = MATRIX[action]

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not roles_of(request.user) & allowed:
                refuse(request, action)
            response = view(request, *args, **kwargs)
            if isinstance(response, HttpResponse):
                response.headers.setdefault("Cache-Control", "no-store")
            return response

        guarded.needs_action = action  # type: ignore[attr-defined]
        return guarded

    return decorate


def refuse(request: HttpRequest, action: str) -> NoReturn:
    """For a part of a form that needs more than its view does."""
    _audit_refusal(request, action)
    raise PermissionDenied(action)


def _audit_refusal(request: HttpRequest, action: str) -> None:
    method = request.method or ""
    if method not in _SAFE_METHODS:
        note_refused_change(request.path, method, action, actor=actor_of(request), now=timezone.now())
