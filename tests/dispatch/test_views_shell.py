"""What stands around every page: language, theme, environment, search, sign-in, overview."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from catalog.models import PublicModel
from dispatch.models import Job
from tests.console import SignIn
from tests.factories import (
    AlertFactory,
    AttemptFactory,
    ChannelFactory,
    ChannelHealthFactory,
    JobFactory,
    ProviderJobFactory,
    PublicModelFactory,
    UserFactory,
    succeeded_job,
)
from tests.operations_world import beat


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def test_i3_switching_the_language_keeps_the_address_and_its_filters(viewer: Client) -> None:
    here = "/console/jobs/?state=failed&state=expired"
    response = viewer.post("/console/language/", {"language": "zh-hans", "next": here})
    assert response["Location"] == here
    text = viewer.get(here).content.decode()
    assert '<html lang="zh-Hans"' in text
    assert "失败" in text


def test_i1_the_page_names_its_language(viewer: Client) -> None:
    assert '<html lang="en"' in viewer.get("/console/").content.decode()


def test_v5_the_theme_stands_in_the_first_bytes_of_the_page(viewer: Client) -> None:
    assert 'data-theme="system"' in viewer.get("/console/").content.decode()
    response = viewer.post("/console/theme/", {"theme": "dark", "next": "/console/jobs/"})
    assert response["Location"] == "/console/jobs/"
    assert 'data-theme="dark"' in viewer.get("/console/").content.decode()
    viewer.post("/console/theme/", {"theme": '"><script>'})
    assert 'data-theme="dark"' in viewer.get("/console/").content.decode()


def test_g4_other_environments_than_production_begin_the_title(viewer: Client, settings: Settings) -> None:
    assert "<title>Jobs, Console</title>" in viewer.get("/console/jobs/").content.decode()
    settings.ENVIRONMENT_NAME = "staging"
    assert "<title>[STAGING] Jobs, Console</title>" in viewer.get("/console/jobs/").content.decode()


def test_the_policy_against_foreign_scripts_covers_every_page_and_no_page_breaks_it(viewer: Client) -> None:
    job = succeeded_job()
    AlertFactory()
    for address in ("/console/", "/console/jobs/", f"/console/jobs/{job.public_id}/", "/console/alerts/"):
        response = viewer.get(address)
        assert "script-src 'self'" in response["Content-Security-Policy"]
        text = response.content.decode()
        for forbidden in (" style=", "<style", "hx-on", "onclick=", "<script>", "javascript:"):
            assert forbidden not in text


@pytest.mark.parametrize("given", ["whole", "beginning"])
def test_g13_an_id_opens_what_it_names(viewer: Client, given: str) -> None:
    attempt = AttemptFactory()
    alert = AlertFactory()
    job_page = f"/console/jobs/{attempt.job.public_id}/"
    ids = {
        attempt.job.public_id: job_page,
        attempt.public_id: f"{job_page}#{attempt.public_id}",
        attempt.selection_round.public_id: f"{job_page}rounds/1/",
        alert.public_id: f"/console/alerts/{alert.public_id}/",
        attempt.job.customer.public_id: f"/console/customers/{attempt.job.customer.public_id}/",
        attempt.job.public_model.public_id: f"/console/models/{attempt.job.public_model.slug}/",
    }
    for public_id, page in ids.items():
        text = public_id if given == "whole" else public_id[:-1]
        assert viewer.get("/console/search/", {"q": f" {text} "})["Location"] == page


def test_g13_a_providers_task_id_and_our_reference_there_open_the_attempt(viewer: Client) -> None:
    task = ProviderJobFactory()
    page = f"/console/jobs/{task.attempt.job.public_id}/#{task.attempt.public_id}"
    for text in (task.provider_job_id, task.attempt.client_request_key):
        assert viewer.get("/console/search/", {"q": text})["Location"] == page


def test_g13_an_id_that_nothing_has_stays_in_the_box(viewer: Client) -> None:
    for text in ("job_0000000000", "job_", "no such thing", "<b>", "%"):
        response = viewer.get("/console/search/", {"q": text})
        assert response.status_code == 200
        assert response.context["hits"] == []
        assert response.context["q"] == text


def test_g13_a_public_model_opens_by_its_name(viewer: Client) -> None:
    PublicModelFactory(slug="vid-hd-5s")
    PublicModelFactory(slug="vid-hd-5s-fast")
    assert viewer.get("/console/search/", {"q": "vid-hd-5s"})["Location"] == "/console/models/vid-hd-5s/"
    assert len(viewer.get("/console/search/", {"q": "vid-hd"}).context["hits"]) == 2


def test_several_hits_are_listed(viewer: Client) -> None:
    jobs = [JobFactory(), JobFactory()]
    text = viewer.get("/console/search/", {"q": jobs[0].public_id[:8]}).content.decode()
    assert all(job.public_id in text for job in jobs)


def test_signing_in_and_out(db: None, plain_static_files: None) -> None:
    user = UserFactory(roles=["viewer"])
    user.set_password("a long enough phrase")
    user.save()
    client = Client()
    wrong = client.post("/console/login/", {"username": user.username, "password": "wrong"})
    assert "<title>Error: " in wrong.content.decode()
    right = {
        "username": user.username,
        "password": "a long enough phrase",
        "next": "/console/jobs/?state=failed",
    }
    assert client.post("/console/login/", right)["Location"] == "/console/jobs/?state=failed"
    assert client.get("/console/logout/").status_code == 405
    assert client.post("/console/logout/")["Location"] == "/console/login/"
    assert client.get("/console/").status_code == 302


def test_the_overview_says_what_needs_a_person(viewer: Client) -> None:
    AlertFactory()
    AttemptFactory(state="submission_uncertain")
    model = PublicModelFactory()
    PublicModel.objects.filter(pk=model.pk).update(
        published=False, enabled=False, published_revision=1, revision=2
    )
    ChannelHealthFactory(channel=ChannelFactory(slug="heron-a"), state="circuit_open")
    text = viewer.get("/console/").content.decode()
    assert "critical alert not acknowledged" in text
    assert "attempt whose outcome is not known" in text
    assert f"{model.slug} is saved at revision 2 and not published" in text
    assert text.index("heron-a") < text.index("Healthy")


def test_the_overview_of_a_quiet_installation_says_that_it_is_quiet(viewer: Client) -> None:
    beat(timezone.now())
    text = viewer.get("/console/").content.decode()
    assert "Quiet: no job is waiting or running" in text
    assert "Nothing. No critical alert is open" in text


def test_the_search_finds_a_job_by_its_idempotency_key(viewer: Client) -> None:
    job = JobFactory(idempotency_key="order 1007/a")
    JobFactory(idempotency_key="order 1007/b")
    other = JobFactory(idempotency_key="job_of_their_own", call="images")
    found = viewer.get("/console/search/", {"q": "order 1007/a"})
    assert found["Location"] == f"/console/jobs/{job.public_id}/"
    found = viewer.get("/console/search/", {"q": "job_of_their_own"})
    assert found["Location"] == f"/console/jobs/{other.public_id}/"
    assert viewer.get("/console/search/", {"q": "order 1007"}).status_code == 200


def test_the_overview_says_when_nothing_moves(viewer: Client) -> None:
    beat(timezone.now())
    JobFactory(state="queued", created_at=timezone.now() - timedelta(minutes=6, seconds=20))
    assert "Nothing moves: 1 job is waiting for 6 min 20 s" in viewer.get("/console/").content.decode()
    Job.objects.update(state="running")
    assert "Flowing. Running: 1." in viewer.get("/console/").content.decode()


def test_a_page_that_fails_says_its_reference_and_one_that_is_not_there_offers_the_search(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = sign_in("viewer")
    lost = viewer.get("/console/models/nothing/")
    assert lost.status_code == 404
    assert 'action="/console/search/" role="search"' in lost.content.decode()
    monkeypatch.setattr("dispatch.views.search.find", lambda _text: 1 / 0)
    viewer.raise_request_exception = False
    viewer.cookies["theme"] = "dark"
    failed = viewer.get("/console/search/?q=job_1234")
    assert failed.status_code == 500
    text = failed.content.decode()
    assert "This page could not be made" in text
    assert '<html lang="en" data-theme="dark">' in text
    assert failed["X-Request-Id"] in text
