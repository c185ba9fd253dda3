"""The pages of jobs that the real engine ran: what it stored is what they read."""

import pytest
from django.test import Client

from catalog.models import Channel
from catalog.revision import bump_revision
from dispatch.models import Asset
from tests.console import SignIn
from tests.engine import IMAGE, VIDEO, Engine


@pytest.fixture
def viewer(engine: Engine, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Client:
    """By the engine's clock: an output is kept for some weeks."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: engine.now)
    return sign_in("viewer")


@pytest.mark.parametrize("body", [VIDEO, IMAGE], ids=["video", "image"])
def test_a_delivered_job_is_told_whole(engine: Engine, viewer: Client, body: dict[str, str]) -> None:
    job = engine.job(body)
    engine.finish(job)
    response = viewer.get(f"/console/jobs/{job.public_id}/")
    text = response.content.decode()
    (told,) = response.context["rounds"]
    adopted = job.attempts.get()
    assert told.selected.supply == adopted.supply.slug
    assert f"Delivered by {adopted.supply.slug} (tier {adopted.tier}) on attempt 1 of at most 2." in text
    assert adopted.provider_job.provider_job_id in text
    assert len(told.rows) == job.public_model.bindings.count()
    assert [line.supply for line in response.context["timeline"].lines] == [adopted.supply.slug]
    assert response.context["story"].events
    assert body["prompt"] not in text


def test_its_file_opens_for_operators_and_its_snapshot_page_adds_up(engine: Engine, viewer: Client) -> None:
    job = engine.job()
    engine.finish(job)
    asset = Asset.objects.get(attempt__job=job)
    response = viewer.get(f"/console/jobs/{job.public_id}/outputs/{asset.public_id}/")
    assert len(b"".join(response)) == asset.size_bytes
    page = viewer.get(f"/console/jobs/{job.public_id}/rounds/1/").content.decode()
    candidates = job.public_model.bindings.count()
    assert f"= {candidates} candidates" in page
    assert page.count(" data-outcome=") == candidates


def test_a_job_that_waits_says_for_what(engine: Engine, viewer: Client) -> None:
    engine.step()
    job = engine.job()
    address = f"/console/jobs/{job.public_id}/"
    assert "The next scan will look at it." in viewer.get(address).content.decode()
    Channel.objects.update(state="disabled")
    bump_revision()
    engine.step()
    text = viewer.get(address).content.decode()
    assert "Those who could take it are switched off or draining." in text
    assert "An operator disabled the channel." in text
