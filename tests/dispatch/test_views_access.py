"""Who may open what: every address of the console, by role."""

from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern

from catalog.models import AuditEntry
from dispatch.models import Asset
from dispatch.views.access import MATRIX, ROLES
from dispatch.views.urls import urlpatterns
from tests.console import SignIn
from tests.factories import AlertFactory, succeeded_job

OPEN_TO_ANYONE = {"login", "logout", "set_language", "set_theme"}
BY_POST = {"acknowledge", "redeliver", "content"}
PAGES = [pattern for pattern in urlpatterns if pattern.name not in OPEN_TO_ANYONE]


@pytest.fixture
def addresses(db: None) -> dict[str, str]:
    job = succeeded_job()
    alert = AlertFactory()
    asset = Asset.objects.get(attempt__job=job)
    return {
        "overview": "/console/",
        "strips": "/console/strips/",
        "search": "/console/search/?q=nothing",
        "alerts": "/console/alerts/",
        "alert": f"/console/alerts/{alert.public_id}/",
        "acknowledge": f"/console/alerts/{alert.public_id}/acknowledge/",
        "redeliver": f"/console/alerts/{alert.public_id}/redeliver/",
        "jobs": "/console/jobs/",
        "job": f"/console/jobs/{job.public_id}/",
        "content": f"/console/jobs/{job.public_id}/content/",
        "output": f"/console/jobs/{job.public_id}/outputs/{asset.public_id}/",
        "round": f"/console/jobs/{job.public_id}/rounds/1/",
    }


@pytest.mark.parametrize("pattern", PAGES, ids=lambda pattern: pattern.name)
def test_p6_every_page_names_the_action_it_needs(pattern: URLPattern) -> None:
    assert _needed_action(pattern) in MATRIX


def _needed_action(pattern: URLPattern) -> str:
    """Decorators for the method stand outside of the one for the action."""
    view: Any = pattern.callback
    while not hasattr(view, "needs_action"):
        view = view.__wrapped__
    return str(view.needs_action)


@pytest.mark.parametrize("role", ["", *ROLES])
@pytest.mark.parametrize("pattern", PAGES, ids=lambda pattern: pattern.name)
def test_p6_each_role_is_let_in_exactly_where_the_view_says(
    sign_in: SignIn, addresses: dict[str, str], pattern: URLPattern, role: str
) -> None:
    client, name = sign_in(*filter(None, [role])), str(pattern.name)
    allowed = role in MATRIX[_needed_action(pattern)]
    # 404: this delivered file was never on disk; who may not come in gets 403 before that.
    assert _right_method(client, name, addresses).status_code in ((200, 302, 404) if allowed else (403,))


@pytest.mark.parametrize("pattern", PAGES, ids=lambda pattern: pattern.name)
def test_p6_no_page_changes_anything_by_get_and_no_list_takes_a_post(
    sign_in: SignIn, addresses: dict[str, str], pattern: URLPattern
) -> None:
    client, name = sign_in("admin"), str(pattern.name)
    wrong_method = client.get if name in BY_POST else client.post
    assert wrong_method(addresses[name]).status_code == 405


def _right_method(client: Client, name: str, addresses: dict[str, str]) -> HttpResponseBase:
    return client.post(addresses[name]) if name in BY_POST else client.get(addresses[name])


@pytest.mark.parametrize("pattern", PAGES, ids=lambda pattern: pattern.name)
def test_somebody_signed_out_is_sent_to_the_login_page(
    plain_static_files: None, addresses: dict[str, str], pattern: URLPattern
) -> None:
    response = _right_method(Client(), str(pattern.name), addresses)
    assert response.status_code == 302
    assert response["Location"].startswith("/console/login/?next=/console/")


def test_l10_a_live_region_of_somebody_signed_out_gets_401_and_no_login_page(
    db: None, plain_static_files: None
) -> None:
    response = Client().get("/console/jobs/", headers={"HX-Request": "true"})
    assert (response.status_code, response.content) == (401, b"")


def test_a_refused_change_is_audited_and_a_refused_look_is_not(
    sign_in: SignIn, addresses: dict[str, str]
) -> None:
    viewer = sign_in("viewer")
    assert viewer.post(addresses["acknowledge"]).status_code == 403
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("li.m", "refused change")
    assert entry.after == {"method": "POST", "needs": "acknowledge"}
    sign_in(username="nobody").get("/console/jobs/")
    assert AuditEntry.objects.count() == 1


def test_p7_a_post_without_its_token_is_refused_with_words(db: None, plain_static_files: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/console/theme/", {"theme": "dark"})
    assert response.status_code == 403
    assert "Nothing was changed" in response.content.decode()


def test_pages_are_never_kept_by_a_browser_or_a_proxy(sign_in: SignIn) -> None:
    assert sign_in("viewer").get("/console/jobs/")["Cache-Control"] == "no-store"
