"""From a customer's request to the delivered file, real at every joint."""

from dispatch.models import Asset, Attempt, CapacityLease, Occupancy, SelectionRound
from tests.engine import IMAGE, VIDEO, Engine


def test_a_video_is_accepted_dispatched_generated_and_delivered(engine: Engine) -> None:
    response = engine.submit(VIDEO)
    assert response.status_code == 201
    assert response.json()["state"] == "queued"
    job = engine.job()
    engine.finish(job)
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert body["state"] == "succeeded", body
    output = body["outputs"][0]
    assert output["content_type"] == "video/mp4"
    assert abs(output["duration_ms"] - 5_000) < 250
    file = b"".join(engine.api.get(output["url"]).streaming_content)
    assert len(file) == output["size_bytes"]
    assert file[4:8] == b"ftyp"


def test_an_image_is_delivered_too(engine: Engine) -> None:
    job = engine.job(IMAGE)
    engine.finish(job)
    assert job.state == "succeeded"
    assert Asset.objects.get(attempt__job=job).content_type in ("image/png", "image/jpeg")


def test_every_attempt_was_posted_once_and_holds_no_slot_when_its_job_is_done(engine: Engine) -> None:
    jobs = [engine.job() for _ in range(4)]
    engine.finish(*jobs)
    attempts = Attempt.objects.filter(job__in=jobs)
    assert engine.accepted() == {attempt.client_request_key: 1 for attempt in attempts}
    assert not CapacityLease.objects.filter(released_at=None).exists()
    assert {(row.confirmed, row.unknown) for row in Occupancy.objects.all()} == {(0, 0)}


def test_the_snapshot_names_every_candidate_and_the_customer_sees_none(engine: Engine) -> None:
    job = engine.job()
    engine.finish(job)
    snapshot = SelectionRound.objects.get(job=job).snapshot
    candidates = snapshot["decision"]["candidates"]
    bound = job.public_model.bindings.count()
    assert len(candidates) == bound > 1
    seen = engine.api.get(f"/api/v1/jobs/{job.public_id}/").content.decode()
    for secret in (*candidates, "ark-", "beijing", "singapore", "doubao"):
        assert secret not in seen
