"""S04: a used key never starts a second job; a definite refusal frees it, an unknown outcome keeps it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from dispatch import live_catalogue, selection_facts
from dispatch.models import Job
from tests.dispatch.test_api import problem
from tests.engine import IMAGE, VIDEO, Engine

Post = Callable[..., Any]
CALLS: dict[str, tuple[dict[str, Any], int]] = {
    "/api/v1/jobs/": (VIDEO, 201),
    "/api/v1/images/": (IMAGE, 200),
}


@pytest.fixture(params=CALLS, ids=lambda path: path.split("/")[-2])
def call(request: pytest.FixtureRequest, engine: Engine) -> tuple[Post, int]:
    """Posts a body of the call under the key `order-1`, and the status of its success."""
    body, created = CALLS[request.param]

    def post(client: Any = None, **changes: Any) -> Any:
        return (client or engine.api).post(
            request.param, {**body, **changes}, format="json", headers={"Idempotency-Key": "order-1"}
        )

    return post, created


def customer_of(engine: Engine, name: str, deposit_micros: int = 10**9) -> Any:
    other = create_customer(name, engine.now, group="studio", deposit_micros=deposit_micros)
    return engine.client(issue_key(other)[1].secret)


def test_a_key_stands_for_one_body_of_one_customer_for_good(engine: Engine, call: tuple[Post, int]) -> None:
    post, created = call
    first = post()
    assert first.status_code == created, first.content
    job = Job.objects.get()
    engine.finish(job)
    live_catalogue._kept.clear()
    selection_facts._kept_statistics.clear()  # what a restart forgets; the rest is rows
    again = post()
    assert (again.status_code, again.content) == (created, first.content), "(a) the same body"
    assert problem(post(prompt="another")) == (409, "idempotency_conflict"), "(b) another body"
    other = post(customer_of(engine, "globex"))
    assert other.status_code == created, "(f) another customer's key"
    assert other.json()["id"] != first.json()["id"]
    assert Job.objects.count() == 2


def test_two_at_once_are_one_job(engine: Engine, call: tuple[Post, int]) -> None:
    def send(_: int) -> tuple[int, bytes]:
        try:
            response = call[0]()
            return response.status_code, bytes(response.content)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as clients:
        answers = set(clients.map(send, range(12)))
    assert [status for status, _ in answers] == [call[1]]
    assert Job.objects.count() == 1


def test_whatever_refuses_leaves_the_key_free(engine: Engine, call: tuple[Post, int]) -> None:
    post, created = call
    assert problem(post(seed="soon")) == (400, "invalid_request")
    assert problem(post(max_cost="0.01")) == (400, "over_max_cost")
    assert problem(post(model="nothing")) == (404, "model_not_found")
    unknown = ["ast_00000000000000000000000000"]
    assert problem(post(reference_images=unknown)) == (422, "asset_not_found")
    poor = customer_of(engine, "initech", deposit_micros=1)
    assert problem(post(poor)) == (402, "insufficient_credit")
    engine.customer.max_queued = engine.customer.max_in_flight = 0
    engine.customer.save()
    assert post().status_code == 429
    engine.customer.max_queued = engine.customer.max_in_flight = 100
    engine.customer.save()
    assert not Job.objects.exists()
    assert post().status_code == created


def test_an_uncertain_submission_keeps_the_key(engine: Engine, call: tuple[Post, int]) -> None:
    post, _ = call
    engine.simulator.script(
        {
            "rules": [
                {
                    "when": {"call": "submit"},
                    "do": {"answer": "drop_after_acceptance", "hidden_from_list_s": 9e9},
                }
            ]
        }
    )
    first = post()
    job = Job.objects.get()
    engine.drain()
    assert engine.attempts(job) == ["submission_uncertain"]
    again = post()
    assert (again.status_code, again.content) == (first.status_code, first.content)
    engine.run(40)
    assert post().content == first.content
    assert Job.objects.count() == len(engine.simulator.world.log()["posts"]) == 1
    shown = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert (shown["state"], shown["delayed"]) == ("running", True)
