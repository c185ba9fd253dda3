"""What is retired stays out of lists and pickers, is shown by one filter, and its page opens; and a job tells
of changes of health while it went on."""

from datetime import timedelta

import pytest
from django.test import Client

from dispatch.models import Job
from health.models import HealthEvent
from tests.console import SignIn
from tests.factories import SupplyFactory, succeeded_job
from tests.models_world import make_models_world

LISTS = ("/console/cost-rules/", "/console/supplies/", "/console/channels/")


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    make_models_world()
    return sign_in("viewer")


def test_g22_retired_supplies_are_absent_until_asked_for_and_their_pages_open(viewer: Client) -> None:
    old = SupplyFactory(slug="old-supply", state="disabled", channel__slug="old-channel")
    old.channel.state = "disabled"
    old.channel.save()
    for address in LISTS:
        named = "old-channel" if "channels" in address else "old-supply"
        assert named not in viewer.get(address).content.decode(), address
        assert named in viewer.get(address, {"retired": "1"}).content.decode(), address
        assert viewer.get(f"{address}{named}/").status_code == 200
    jobs = viewer.get("/console/jobs/").content.decode()
    assert "<option>kestrel-hd</option>" in " ".join(jobs.split())
    assert "old-supply" not in jobs
    assert (
        "<option selected>old-supply</option>"
        in viewer.get("/console/jobs/", {"supply": "old-supply"}).content.decode()
    )


def test_a_job_shows_the_changes_of_health_that_it_lived_through(viewer: Client) -> None:
    job = succeeded_job()
    attempt = job.attempts.get()
    Job.objects.filter(pk=job.pk).update(finished_at=job.created_at + timedelta(minutes=3))
    for minutes, supply in ((1, attempt.supply_id), (2, attempt.supply_id), (9, attempt.supply_id), (1, 999)):
        HealthEvent.objects.create(
            at=job.created_at + timedelta(minutes=minutes),
            subject="supply",
            subject_id=supply,
            from_state="healthy",
            to_state="degraded",
            cause="repeated_failures",
            recovery_successes=0,
            epoch=0,
            evidence={},
            before={},
            parameters={},
        )
    page = viewer.get(f"/console/jobs/{job.public_id}/")
    text = page.content.decode()
    assert "2 changes of health meanwhile" in text
    assert text.count('class="health-mark"') == 3, "two on the line, one in the legend"
    assert page.context["timeline"].lines[0].marks
