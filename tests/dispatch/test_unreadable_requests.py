"""Requests that say what can't be read or stored are answered in words, at each door, and store nothing."""

import json
from base64 import b64encode
from typing import Any

import pytest
from django.test import Client

from dispatch.models import Job
from tests.console import SignIn
from tests.engine import IMAGE, VIDEO, Engine

DOORS = {"jobs": VIDEO, "images": IMAGE}
UNSTORABLE: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"a\0b": "x"}}, "metadata"),
    ({"metadata": {"a\ud800": "x"}}, "metadata"),
    ({"metadata": {"order": "7\0"}}, "metadata.order"),
    ({"degradation": "\ud800"}, "degradation"),
    ({"reference_images": ["https://a.example/1", "https://a.example/\ud800"]}, "reference_images[1]"),
]


def problem(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["request_id"] == response["X-Request-Id"]
    return response.status_code, response.json()["code"]


def cursor(position: str) -> str:
    return b64encode(f"p={position}".encode()).decode()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("changes", "field"), UNSTORABLE)
def test_a_text_that_can_not_be_stored_is_refused_with_its_field(
    engine: Engine, door: str, changes: dict[str, Any], field: str
) -> None:
    body = json.dumps(DOORS[door] | changes)
    response = engine.api.post(f"/api/v1/{door}/", body, content_type="application/json")
    assert problem(response) == (400, "invalid_request")
    assert response.json()["field"] == field
    assert not Job.objects.exists()


def test_a_field_whose_name_can_not_be_stored_is_refused(engine: Engine) -> None:
    body = json.dumps(VIDEO | {"\ud800": 1})
    response = engine.api.post("/api/v1/jobs/", body, content_type="application/json")
    assert problem(response) == (400, "invalid_request")


def test_characters_beyond_the_first_plane_are_stored_as_they_came(engine: Engine) -> None:
    response = engine.submit(prompt="a 🦅 over 上海", metadata={"表情": "🦅"})
    assert (response.status_code, Job.objects.get().request["prompt"]) == (201, "a 🦅 over 上海")
    assert response.json()["metadata"] == {"表情": "🦅"}


@pytest.mark.parametrize("body", ['{"prompt": ' + "[" * 100_000, '{"metadata": ' + '{"a":' * 20_000])
def test_a_body_nested_without_end_is_refused(engine: Engine, body: str) -> None:
    response = engine.api.post("/api/v1/jobs/", body, content_type="application/json")
    assert problem(response) == (400, "invalid_request")


@pytest.mark.parametrize("door", ["jobs", "assets"])
@pytest.mark.parametrize("position", ["garbage", "9999-99-99", "2026-11-30 12:00:00", "%00"])
def test_a_cursor_that_no_page_gave_out_is_refused(engine: Engine, door: str, position: str) -> None:
    response = engine.api.get(f"/api/v1/{door}/", {"cursor": cursor(position)})
    assert problem(response) == (404, "not_found")


@pytest.mark.parametrize(
    "address", ["/api/v1/jobs/%00/", "/api/v1/jobs/?idempotency_key=%00", "/api/v1/assets/a%00/"]
)
def test_an_address_with_nul_in_it_is_refused(engine: Engine, address: str) -> None:
    assert problem(engine.api.get(address)) == (400, "invalid_request")


def test_an_address_of_the_api_that_leads_nowhere_is_a_problem_and_no_page(engine: Engine) -> None:
    assert problem(engine.api.get("/api/v1/nothing/")) == (404, "not_found")


def test_what_nobody_foresaw_is_a_problem_of_the_api_too(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dispatch.api.jobs.customer_queue", lambda *_: 1 / 0)
    job = engine.job()
    engine.api.raise_request_exception = False
    assert problem(engine.api.get(f"/api/v1/jobs/{job.public_id}/")) == (500, "internal_error")


def test_nul_in_a_provider_s_call_is_refused_before_anything_is_looked_up(db: None) -> None:
    response = Client().post("/callbacks/ark%00/place/", b"{}", content_type="application/json")
    assert response.status_code == 400


def test_the_console_says_what_to_do_about_a_request_that_can_not_be_read(sign_in: SignIn) -> None:
    operator = sign_in("operator")
    for response in (
        operator.get("/console/jobs/", {"customer": "a\0"}),
        operator.get("/console/jobs/job_%00/"),
        operator.post("/console/views/", "name=a%00", content_type="application/x-www-form-urlencoded"),
    ):
        assert response.status_code == 400
        assert "Nothing was changed" in response.content.decode()


def test_a_percent_sign_before_two_noughts_is_no_nul(sign_in: SignIn) -> None:
    assert sign_in("viewer").get("/console/search/", {"q": "%00"}).status_code == 200
