"""The customer's door: what it takes, what it refuses, and that it never starts a second job."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from billing.models import ApiKey
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.models import PublicModel
from catalog.revision import bump_revision
from dispatch.models import Job
from tests.engine import IMAGE, VIDEO, Engine


def problem(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


def test_the_same_key_and_body_give_the_first_answer_byte_for_byte(engine: Engine) -> None:
    first = engine.submit(key="order-1")
    job = Job.objects.get()
    assert engine.submit(key="order-1").content == first.content
    engine.finish(job)
    again = engine.submit(key="order-1")
    assert (again.status_code, again.content) == (201, first.content)
    assert Job.objects.count() == 1


def test_the_description_of_the_api_says_that_the_first_answer_tells_of_its_own_moment(db: None) -> None:
    described = Client().get("/api/schema/", headers={"Accept": "application/json"}).json()["paths"]
    for call in ("jobs", "images"):
        (header,) = described[f"/api/v1/{call}/"]["post"]["parameters"]
        assert header["name"] == "Idempotency-Key"
        assert "its `state` is what it was then" in header["description"]


def change(model: PublicModel, **values: Any) -> None:
    PublicModel.objects.filter(pk=model.pk).update(**values)
    bump_revision()


def test_the_same_key_gives_its_answer_though_the_request_would_be_refused_today(
    engine: Engine,
) -> None:
    first = engine.submit(key="order-1")
    change(Job.objects.get().public_model, published=False, enabled=False)
    assert problem(engine.submit(key="order-2")) == (409, "model_not_published")
    assert engine.submit(key="order-1").content == first.content
    assert problem(engine.submit(key="order-1", duration_s=6)) == (409, "idempotency_conflict")


def test_the_same_key_with_another_body_is_a_conflict(engine: Engine) -> None:
    engine.submit(key="order-1")
    assert problem(engine.submit(key="order-1", duration_s=6)) == (409, "idempotency_conflict")
    assert Job.objects.count() == 1


def test_a_refused_request_leaves_the_key_free(engine: Engine) -> None:
    assert problem(engine.submit(key="order-1", duration_s=99)) == (400, "invalid_request")
    assert engine.submit(key="order-1").status_code == 201


def test_the_same_key_of_another_customer_is_another_job(engine: Engine) -> None:
    engine.submit(key="order-1")
    other = create_customer("globex", engine.now, group="studio", deposit_micros=10**9)
    response = engine.client(issue_key(other)[1].secret).post(
        "/api/v1/jobs/", VIDEO, format="json", headers={"Idempotency-Key": "order-1"}
    )
    assert response.status_code == 201
    assert Job.objects.count() == 2


def test_fifty_posts_at_once_with_one_key_make_one_job_and_one_answer(engine: Engine) -> None:
    def post(_: int) -> bytes:
        try:
            return bytes(engine.submit(key="order-1").content)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as clients:
        answers = set(clients.map(post, range(50)))
    assert len(answers) == 1
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"duration_s": 99}, "duration_s"),
        ({"duration_s": "soon"}, "duration_s"),
        ({"resolution": "8k"}, "resolution"),
        ({"aspect_ratio": "2:1"}, "aspect_ratio"),
        ({"reference_images": ["http://example.com/a.png"]}, "reference_images"),
        ({"reference_images": ["https://example.com/a.png"] * 21}, "reference_images"),
        ({"size": "1024x1024"}, "size"),
        ({"colour": "blue"}, "colour"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x" * 20_001}, "prompt"),
        ({"max_cost": "0.0000001"}, "max_cost"),
        ({"seed": -1}, "seed"),
        ({"routing_mode": "fastest"}, "routing_mode"),
        ({"metadata": {str(n): "x" * 400 for n in range(20)}}, "metadata"),
    ],
)
def test_a_value_that_can_not_be_is_refused_with_its_field(
    engine: Engine, changes: dict[str, Any], field: str
) -> None:
    response = engine.submit(**changes)
    assert problem(response) == (400, "invalid_request")
    assert response.json()["field"].startswith(field)
    assert not Job.objects.exists()


def test_a_body_that_is_no_object_or_too_large_is_refused(engine: Engine) -> None:
    for body in ("[]", "nonsense", "{"):
        response = engine.api.post("/api/v1/jobs/", body, content_type="application/json")
        assert problem(response) == (400, "invalid_request")
    huge = '{"prompt": "' + "x" * 300_000 + '"}'
    response = engine.api.post("/api/v1/jobs/", huge, content_type="application/json")
    assert problem(response) == (413, "body_too_large")
    assert not Job.objects.exists()


def test_an_image_request_knows_no_real_person(engine: Engine) -> None:
    assert problem(engine.submit(IMAGE, real_person=True)) == (400, "invalid_request")


def test_without_a_key_or_with_a_wrong_or_revoked_one_nothing_opens(engine: Engine) -> None:
    stranger = engine.client("fy_live_" + "0" * 38)
    assert problem(stranger.get("/api/v1/jobs/")) == (401, "not_authenticated")
    ApiKey.objects.filter(pk=engine.key.pk).update(revoked_at=timezone.now())
    assert problem(engine.api.get("/api/v1/jobs/")) == (401, "not_authenticated")


def test_a_key_that_may_only_read_can_not_submit(engine: Engine) -> None:
    reader = engine.client(issue_key(engine.customer, scopes=("read",))[1].secret)
    assert problem(reader.post("/api/v1/jobs/", VIDEO, format="json")) == (403, "permission_denied")
    assert reader.get("/api/v1/jobs/").status_code == 200


def test_a_strangers_job_does_not_exist(engine: Engine) -> None:
    job = engine.job()
    engine.finish(job)
    other = create_customer("globex", engine.now, group="studio", deposit_micros=10**9)
    stranger = engine.client(issue_key(other)[1].secret)
    address = f"/api/v1/jobs/{job.public_id}/"
    for response in (
        stranger.get(address),
        stranger.post(f"{address}cancel/"),
        stranger.get(f"{address}output/1/"),
    ):
        assert problem(response) == (404, "job_not_found")
    assert stranger.get("/api/v1/jobs/").json()["results"] == []


def test_a_customer_without_credit_is_refused_before_any_provider_call(engine: Engine) -> None:
    poor = create_customer("initech", engine.now, group="studio", deposit_micros=1_000_000)
    client = engine.client(issue_key(poor)[1].secret)
    for _ in range(5):
        assert problem(client.post("/api/v1/jobs/", VIDEO, format="json")) == (402, "insufficient_credit")
    engine.run(5)
    assert not Job.objects.exists()
    assert not engine.simulator.world.log()["posts"]


def test_a_price_above_the_customers_own_limit_is_refused(engine: Engine) -> None:
    assert problem(engine.submit(max_cost="1.49")) == (400, "over_max_cost")
    assert engine.submit(max_cost="1.50").status_code == 201, "5 s at 0.30 USD"


def test_a_model_of_another_group_or_unknown_does_not_exist_and_one_in_change_says_so(engine: Engine) -> None:
    assert problem(engine.submit(model="nothing")) == (404, "model_not_found")
    model = engine.job().public_model
    change(model, published=False, enabled=False)
    assert problem(engine.submit()) == (409, "model_not_published")
    change(model, allowed_groups=["elsewhere"])
    assert problem(engine.submit()) == (404, "model_not_found")


def test_a_range_of_an_output_is_served_and_one_beyond_its_end_refused(engine: Engine) -> None:
    job = engine.job(IMAGE)
    engine.finish(job)
    address = f"/api/v1/jobs/{job.public_id}/output/1/"
    whole = b"".join(engine.api.get(address).streaming_content)
    part = engine.api.get(address, headers={"Range": "bytes=2-5"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, whole[2:6])
    assert part["Content-Range"] == f"bytes 2-5/{len(whole)}"
    assert engine.api.get(address, headers={"Range": f"bytes={len(whole)}-"}).status_code == 416


def test_a_page_of_jobs_ends_where_the_next_begins(engine: Engine) -> None:
    ids = [engine.submit().json()["id"] for _ in range(3)]
    first = engine.api.get("/api/v1/jobs/?limit=2").json()
    second = engine.api.get(first["next"]).json()
    listed = [job["id"] for job in first["results"] + second["results"]]
    assert sorted(listed) == sorted(ids)
    assert second["next"] is None
    assert problem(engine.api.get("/api/v1/jobs/?state=lost")) == (400, "invalid_request")


def test_the_catalogue_shows_what_may_be_lost_and_no_supplier(engine: Engine) -> None:
    body = engine.api.get("/api/v1/models/")
    models = {model["id"]: model for model in body.json()["results"]}
    assert set(models) == {"seedance-2.0-933", "seedance-1.0-pro", "seedream-4.0"}
    assert "dropped" in models["seedance-2.0-933"]["disclosure"]
    for secret in ("beijing", "singapore", "doubao", "priority"):
        assert secret not in body.content.decode()
