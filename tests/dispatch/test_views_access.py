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
from tests import money_world
from tests.console import SignIn
from tests.factories import AlertFactory, succeeded_job
from tests.models_world import BASE
from tests.operations_world import operations_addresses

OPEN_TO_ANYONE = {"login", "logout", "set_language", "set_theme"}
BY_POST = money_world.BY_POST | {
    "acknowledge",
    "acknowledge_ticked",
    "acknowledge_matching_now",
    "own_alert",
    "redeliver",
    "save_view",
    "forget_view",
    "export_jobs_now",
    "export_ticked_jobs",
    "cancel_job_now",
    "probe_now",
    "keep_supply_step",
    "discard_supply_draft_now",
    "try_supply_now",
    "look_at_trial",
    "content",
    "keep_edit",
    "discard_edit_now",
    "merge_edit",
    "save_model",
    "publish_now",
    "withdraw_now",
    "revert",
    "take_attempt",
    "query_attempt",
    "decide_attempt_now",
    "start_maintenance",
    "end_maintenance",
    "set_limit",
    "switch_supply_now",
}
PAGES = [pattern for pattern in urlpatterns if pattern.name not in OPEN_TO_ANYONE]


def list_addresses(alert: str, job: str) -> dict[str, str]:
    """Of what is done with the rows of lists."""
    return {
        "acknowledge_ticked": "/console/alerts/ticked/",
        "acknowledge_matching": "/console/alerts/matching/",
        "acknowledge_matching_now": "/console/alerts/matching/now/",
        "own_alert": f"/console/alerts/{alert}/own/",
        "save_view": "/console/views/",
        "forget_view": "/console/views/viw_nothing/forget/",
        "export_jobs": "/console/jobs/export/",
        "export_jobs_now": "/console/jobs/export/now/",
        "export_ticked_jobs": "/console/jobs/export/ticked/",
        "cancel_job": f"/console/jobs/{job}/cancel/",
        "cancel_job_now": f"/console/jobs/{job}/cancel/now/",
    }


def supply_addresses() -> dict[str, str]:
    """Of adding and trying a supply, and probing a circuit, in the world of operations."""
    supply = "/console/supplies/kestrel-hd/"
    return {
        "new_supply": "/console/supplies/new/",
        "supply_step": "/console/supplies/new/dft_nothing/can/",
        "keep_supply_step": "/console/supplies/new/keep/what/",
        "discard_supply_draft": "/console/supplies/new/dft_nothing/discard/",
        "discard_supply_draft_now": "/console/supplies/new/dft_nothing/discard/now/",
        "try_supply": f"{supply}try/",
        "try_supply_now": f"{supply}try/now/",
        "look_at_trial": f"{supply}try/trl_nothing/look/",
        "probe": "/console/channels/kestrel-main/probe/",
        "probe_now": "/console/channels/kestrel-main/probe/now/",
    }


@pytest.fixture
def addresses(db: None) -> dict[str, str]:
    job = succeeded_job()
    alert = AlertFactory()
    asset = Asset.objects.get(attempt__job=job)
    return {
        **supply_addresses(),
        "models": "/console/models/",
        "model": BASE,
        "edit_model": f"{BASE}edit/",
        "keep_edit": f"{BASE}edit/keep/",
        "discard_edit": f"{BASE}edit/discard/",
        "discard_edit_now": f"{BASE}edit/discard/now/",
        "merge_edit": f"{BASE}edit/merge/",
        "review_model": f"{BASE}review/",
        "effect": f"{BASE}effect/",
        "save_model": f"{BASE}save/",
        "publish_model": f"{BASE}publish/",
        "publish_now": f"{BASE}publish/now/",
        "withdraw": f"{BASE}withdraw/",
        "withdraw_now": f"{BASE}withdraw/now/",
        "revisions": f"{BASE}revisions/",
        "difference": f"{BASE}revisions/1..2/",
        "revert": f"{BASE}revisions/1/revert/",
        "simulator": "/console/simulator/",
        **operations_addresses(),
        **money_world.make_money_world().addresses(),
        "overview": "/console/",
        "strips": "/console/strips/",
        "search": "/console/search/?q=nothing",
        "alerts": "/console/alerts/",
        "alert": f"/console/alerts/{alert.public_id}/",
        "acknowledge": f"/console/alerts/{alert.public_id}/acknowledge/",
        "redeliver": f"/console/alerts/{alert.public_id}/redeliver/",
        **list_addresses(alert.public_id, job.public_id),
        "jobs": "/console/jobs/",
        "job": f"/console/jobs/{job.public_id}/",
        "content": f"/console/jobs/{job.public_id}/content/",
        "output": f"/console/jobs/{job.public_id}/outputs/{asset.public_id}/",
        "round": f"/console/jobs/{job.public_id}/rounds/1/",
    }


def _needed_action(pattern: URLPattern) -> str:
    """Decorators for the method stand outside of the one for the action."""
    view: Any = pattern.callback
    while not hasattr(view, "needs_action"):
        view = view.__wrapped__
    return str(view.needs_action)


def test_p6_every_page_names_the_action_it_needs() -> None:
    assert {_needed_action(pattern) for pattern in PAGES} <= set(MATRIX)


@pytest.mark.parametrize("role", ["", *ROLES])
def test_p6_each_role_is_let_in_exactly_where_the_table_says(
    sign_in: SignIn, addresses: dict[str, str], role: str
) -> None:
    client = sign_in(*filter(None, [role]))
    let_in = {str(pattern.name): _is_let_in(client, str(pattern.name), addresses) for pattern in PAGES}
    assert let_in == {str(pattern.name): role in MATRIX[_needed_action(pattern)] for pattern in PAGES}


def _is_let_in(client: Client, name: str, addresses: dict[str, str]) -> bool:
    """Whoever may, but does not confirm, is refused as well; only the refusal for the role is audited."""
    refused = AuditEntry.objects.filter(action="refused change")
    before = refused.count()
    status = _right_method(client, name, addresses).status_code
    # 404: this delivered file was never on disk. 409: a merge without a choice.
    assert status in (200, 302, 403, 404, 409, 422)
    return refused.count() == before if name in BY_POST else status != 403


def test_p6_no_page_changes_anything_by_get_and_no_list_takes_a_post(
    sign_in: SignIn, addresses: dict[str, str]
) -> None:
    client = sign_in("admin")
    for pattern in PAGES:
        wrong_method = client.get if pattern.name in BY_POST else client.post
        assert wrong_method(addresses[str(pattern.name)]).status_code == 405, pattern.name


def _right_method(client: Client, name: str, addresses: dict[str, str]) -> HttpResponseBase:
    return client.post(addresses[name]) if name in BY_POST else client.get(addresses[name])


def test_somebody_signed_out_is_sent_to_the_login_page(
    plain_static_files: None, addresses: dict[str, str]
) -> None:
    for pattern in PAGES:
        response = _right_method(Client(), str(pattern.name), addresses)
        assert response.status_code == 302, pattern.name
        assert response["Location"].startswith("/console/login/?next=/console/")


def test_a_refusal_names_the_roles_that_may(sign_in: SignIn, addresses: dict[str, str]) -> None:
    page = sign_in("viewer").get(addresses["edit_model"])
    assert "operator, admin" in page.content.decode()
    unconfirmed = sign_in("admin", username="root").post(addresses["publish_now"])
    assert "Nothing was changed" in unconfirmed.content.decode()


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
    refused = AuditEntry.objects.filter(action="refused change")
    entry = refused.get()
    assert entry.actor == "li.m"
    assert entry.after == {"method": "POST", "needs": "acknowledge"}
    sign_in(username="nobody").get("/console/jobs/")
    assert refused.count() == 1


def test_p7_a_post_without_its_token_is_refused_with_words(db: None, plain_static_files: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/console/theme/", {"theme": "dark"})
    assert response.status_code == 403
    assert "Nothing was changed" in response.content.decode()
    assert 'href="/console/">To the overview' in response.content.decode()


def test_pages_are_never_kept_by_a_browser_or_a_proxy(sign_in: SignIn) -> None:
    assert sign_in("viewer").get("/console/jobs/")["Cache-Control"] == "no-store"
