"""S18: a client that hangs up loses nothing: its job goes on, holds its slot, and is found by its key."""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from threading import Event
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from billing.services.issue_key import issue_key
from dispatch.models import CapacityLease, Job
from tests.engine import IMAGE, VIDEO, Engine


def post_and_hang_up(engine: Engine, server: LiveServer, path: str, body: Mapping[str, Any]) -> None:
    """The whole request is sent; nobody stays for the answer."""
    address = urlsplit(server.url)
    content, secret = json.dumps(body).encode(), issue_key(engine.customer)[1].secret
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {secret}\r\n"
        "Idempotency-Key: dropped\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(head.encode() + content)
        time.sleep(0.3)  # so that the request is read before the line is cut


def eventually(condition: Any, what: str) -> Any:
    """Real time passes here: another thread works."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within 60 s: {what}")


def found_by_key(engine: Engine) -> Mapping[str, Any] | None:
    results = engine.api.get("/api/v1/jobs/?idempotency_key=dropped").json()["results"]
    return results[0] if results else None


@pytest.fixture
def provider(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Has a submission, and answers it when the test has seen what is to be seen meanwhile."""
    answers = Event()
    monkeypatch.setattr("catalog.simulator.wire.time", SimpleNamespace(sleep=lambda _: answers.wait(60)))
    engine.script("submit", latency_s=60)
    yield answers
    answers.set()


@pytest.fixture
def server(engine: Engine, live_server: LiveServer) -> Any:
    yield live_server
    connections.close_all()


def test_an_image_goes_on_without_its_customer_and_keeps_its_slot_until_its_end(
    engine: Engine, server: LiveServer, provider: Event
) -> None:
    post_and_hang_up(engine, server, "/api/v1/images/", IMAGE)
    eventually(engine.posts, "the provider works")
    assert found_by_key(engine), "the job is there meanwhile"
    assert CapacityLease.objects.get().state == "live", "hanging up frees no slot"
    provider.set()
    job = eventually(lambda: Job.objects.filter(state="succeeded").first(), "the picture is delivered")
    assert CapacityLease.objects.get().released_at is not None
    shown = found_by_key(engine)
    assert shown is not None
    assert (shown["id"], shown["state"]) == (job.public_id, "succeeded")
    eventually(lambda: Job.objects.exclude(first_answer="").exists(), "its answer is kept")
    again = engine.api.post("/api/v1/images/", IMAGE, format="json", headers={"Idempotency-Key": "dropped"})
    assert (again.status_code, again.json()["id"]) == (200, job.public_id)
    assert len(engine.simulator.world.log()["posts"]) == 1


def test_a_cancelled_image_ends_as_the_provider_ends_it(
    engine: Engine, server: LiveServer, provider: Event
) -> None:
    post_and_hang_up(engine, server, "/api/v1/images/", IMAGE)
    eventually(engine.posts, "the provider works")
    shown = found_by_key(engine)
    assert shown is not None
    job_id = shown["id"]
    wish = engine.api.post(f"/api/v1/jobs/{job_id}/cancel/")
    assert (wish.status_code, wish.json()["state"]) == (202, "cancel_requested")
    provider.set()
    eventually(lambda: Job.objects.exclude(first_answer="").exists(), "the request is answered")
    job = Job.objects.get()
    assert (job.state, job.charged_micros) == ("succeeded", job.reserved_micros), (
        "made, so paid and delivered"
    )
    assert engine.api.post(f"/api/v1/jobs/{job_id}/cancel/").status_code == 409


def test_a_job_goes_on_without_its_customer(engine: Engine, server: LiveServer) -> None:
    post_and_hang_up(engine, server, "/api/v1/jobs/", VIDEO)
    shown = eventually(lambda: found_by_key(engine), "the job is there")
    job = Job.objects.get(public_id=shown["id"])
    engine.finish(job)
    assert job.state == "succeeded"
    assert len(engine.simulator.world.log()["posts"]) == 1
