"""One job's page: the answer, the attempts, each round, the money, and content only on request."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from billing.models import ProviderUsageEntry
from catalog.models import AuditEntry
from dispatch.models import Asset, Job
from tests.console import SignIn
from tests.factories import (
    NOW,
    AttemptFactory,
    JobFactory,
    ProviderEventFactory,
    PublicModelFactory,
    SelectionRoundFactory,
    SupplyFactory,
    succeeded_job,
)
from tests.snapshots import recorded, recorded_image, recorded_switch

BEAT = {"HX-Request": "true"}
SECRET_PROMPT = "my grandmother dances on a red roof"


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def read(client: Client, job: Job) -> str:
    return client.get(f"/console/jobs/{job.public_id}/").content.decode()


def switched_job() -> Job:
    """kestrel-hd was overloaded, kestrel-lite delivered; the first submission of the second was unknown."""
    job = JobFactory(state="running")
    first = AttemptFactory(
        job=job,
        supply=SupplyFactory(slug="kestrel-hd"),
        selection_round=SelectionRoundFactory(job=job, snapshot=recorded()),
        state="failed",
        error_category="capacity",
        error_code="overloaded",
        error_message="The service is overloaded.",
        retryable=True,
        accepted_at=NOW + timedelta(seconds=4),
        finished_at=NOW + timedelta(seconds=90),
    )
    second = AttemptFactory(
        job=job,
        number=2,
        supply=SupplyFactory(slug="kestrel-lite"),
        selection_round=SelectionRoundFactory(job=job, attempt_number=2, snapshot=recorded_switch()),
        state="succeeded",
        created_at=NOW + timedelta(seconds=91),
        request_started_at=NOW + timedelta(seconds=92),
        accepted_at=NOW + timedelta(seconds=110),
        generated_at=NOW + timedelta(seconds=170),
        finished_at=NOW + timedelta(seconds=177),
    )
    ProviderEventFactory(attempt=second, kind="submit", outcome="unknown", at=NOW + timedelta(seconds=95))
    Job.objects.filter(pk=job.pk).update(
        state="succeeded", adopted_attempt=second, finished_at=second.finished_at, started_at=first.created_at
    )
    job.refresh_from_db()
    return job


def test_r1_the_answer_names_the_supply_its_tier_and_the_number_of_candidates(viewer: Client) -> None:
    text = read(viewer, switched_job())
    assert "Delivered by kestrel-lite (tier exact) on attempt 2 of at most 2." in text
    assert "Of 8 candidates 2 could take the job; it stood first." in text


def test_r5_both_rounds_of_a_switched_job_stand_there_and_the_switch_is_used(viewer: Client) -> None:
    text = read(viewer, switched_job())
    assert 'id="round-1"' in text
    assert 'id="round-2"' in text
    assert "The switch is used: attempt 2 is the last." in text
    single = succeeded_job(supply=SupplyFactory(slug="osprey"))
    assert 'id="round-2"' not in read(viewer, single)


def test_r8_the_waterfall_and_its_table_tell_the_uncertain_time_apart(viewer: Client) -> None:
    response = viewer.get(f"/console/jobs/{switched_job().public_id}/")
    second = response.context["timeline"].lines[1]
    assert [segment.phase for segment in second.segments] == [
        "queue",
        "prepare",
        "submit",
        "uncertain",
        "run",
        "deliver",
    ]
    assert "outcome unknown" in response.content.decode()


def test_operators_read_both_attempts_errors_and_what_the_customer_is_told(viewer: Client) -> None:
    job = JobFactory(state="running")
    AttemptFactory(
        job=job,
        supply=SupplyFactory(slug="finch"),
        state="failed",
        error_category="supply",
        error_code="internal_permanent",
        error_message="raw provider words",
        transport_stage="awaiting",
    )
    Job.objects.filter(pk=job.pk).update(
        state="failed",
        finished_at=NOW,
        error_code="generation_failed",
        error_message="The generation failed. You are not charged; you may try again.",
    )
    text = read(viewer, job)
    for told in (
        "The customer reads",
        "generation_failed",
        "raw provider words",
        "internal_permanent",
        "answer was awaited",
        "finch",
    ):
        assert told in text


def test_r7_an_attempt_that_failed_before_sending_still_names_supply_channel_and_provider(
    viewer: Client,
) -> None:
    attempt = AttemptFactory(state="failed", error_category="supply", error_code="network")
    text = read(viewer, attempt.job)
    for name in (attempt.supply.slug, attempt.channel.slug, attempt.channel.provider, "network"):
        assert name in text


def test_p8_the_prompt_is_shown_only_on_request_and_the_look_is_audited(viewer: Client) -> None:
    job = JobFactory(request={"mode": "text_to_video", "prompt": SECRET_PROMPT, "duration_s": 5})
    assert SECRET_PROMPT not in read(viewer, job)
    assert not AuditEntry.objects.exists()
    shown = viewer.post(f"/console/jobs/{job.public_id}/content/")
    assert SECRET_PROMPT in shown.content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.subject) == ("li.m", "show content", f"job:{job.public_id}")
    assert SECRET_PROMPT not in str(entry.after)


def test_p8_a_beat_never_carries_the_prompt(viewer: Client) -> None:
    job = JobFactory(request={"mode": "text_to_video", "prompt": SECRET_PROMPT})
    viewer.post(f"/console/jobs/{job.public_id}/content/", headers=BEAT)
    beat = viewer.get(f"/console/jobs/{job.public_id}/", headers=BEAT)
    assert beat.status_code == 200
    assert SECRET_PROMPT not in beat.content.decode()


def test_addresses_of_reference_files_are_counted_and_not_shown(viewer: Client) -> None:
    address = "https://files.example.com/private/face.png"
    job = JobFactory(
        request={"mode": "image_to_video", "prompt": "x", "reference_images": [address, address]}
    )
    text = read(viewer, job)
    assert address not in text
    assert "Reference images" in text


def test_the_page_of_an_image_has_no_word_about_real_persons(viewer: Client) -> None:
    job = JobFactory(public_model=PublicModelFactory(image=True), state="running")
    AttemptFactory(
        job=job,
        supply=SupplyFactory(image=True, slug="dream-a"),
        selection_round=SelectionRoundFactory(job=job, snapshot=recorded_image()),
    )
    for address in (f"/console/jobs/{job.public_id}/", f"/console/jobs/{job.public_id}/rounds/1/"):
        text = viewer.get(address).content.decode().lower().replace("_", " ")
        assert "dream-a" in text
        assert "real person" not in text


def test_a_degraded_delivery_says_what_was_dropped(viewer: Client) -> None:
    job = succeeded_job()
    Job.objects.filter(pk=job.pk).update(
        actual_profile="900", dropped_inputs=["reference_videos", "reference_audios"]
    )
    text = read(viewer, job)
    assert "profile 933 was asked for, 900 was executed" in text
    assert "Dropped: reference videos, reference audio." in text


def test_the_delivered_file_opens_with_its_type(viewer: Client, settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_DIR = tmp_path
    job = succeeded_job()
    asset = Asset.objects.get(attempt__job=job)
    job_id = job.public_id
    address = f"/console/jobs/{job_id}/outputs/{asset.public_id}/"
    assert viewer.get(address).status_code == 404  # not on disk
    (tmp_path / asset.path).parent.mkdir(parents=True)
    (tmp_path / asset.path).write_bytes(b"a small film")
    response = viewer.get(address)
    assert b"".join(response) == b"a small film"
    assert response["Content-Type"] == "video/mp4"
    assert response["X-Content-Type-Options"] == "nosniff"
    stranger = succeeded_job()
    assert viewer.get(f"/console/jobs/{stranger.public_id}/outputs/{asset.public_id}/").status_code == 404


def test_l13_a_job_in_a_final_state_sends_its_region_without_a_trigger(viewer: Client) -> None:
    running = read(viewer, AttemptFactory(state="running").job)
    assert 'hx-trigger="live-5s from:body"' in running
    assert 'hx-trigger="live-5s from:body"' not in read(viewer, succeeded_job())


def test_l13_the_last_beat_of_a_job_tells_its_region_to_stop(viewer: Client) -> None:
    job = succeeded_job()
    beat = viewer.get(f"/console/jobs/{job.public_id}/", headers=BEAT).content.decode()
    assert beat.lstrip().startswith('<div id="job"')
    assert "hx-trigger" not in beat


def test_p1_a_job_page_asks_a_fixed_number_of_queries(viewer: Client) -> None:
    small, large = succeeded_job(), switched_job()
    delivered = large.attempts.get(number=2)
    for kind in ("expected", "settled"):
        ProviderUsageEntry.objects.create(
            attempt=delivered.public_id,
            supply=delivered.supply,
            kind=kind,
            amount_micros=1,
            currency="USD",
            at=NOW,
        )
    read(viewer, small)
    counts = []
    for job in (small, large):
        with CaptureQueriesContext(connection) as queries:
            read(viewer, job)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 18


def test_an_id_that_nothing_has_is_not_found(viewer: Client) -> None:
    assert viewer.get("/console/jobs/job_nothing/").status_code == 404
    assert viewer.get(f"/console/jobs/{JobFactory().public_id}/rounds/1/").status_code == 404
