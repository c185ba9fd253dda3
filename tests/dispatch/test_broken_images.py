"""Images of one account at once: no more run than the account may have running."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from billing.models import Customer
from dispatch.models import CapacityLease
from dispatch.services import generate_image as generating
from dispatch.services.answer_image import ImageAnswer
from tests.engine import IMAGE, Engine


def test_images_at_once_never_get_beyond_the_most_that_an_account_may_have_running(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Customer.objects.filter(pk=engine.customer.pk).update(max_in_flight=1)
    # None ends while others come.
    monkeypatch.setattr(generating, "_execute", lambda *_: None)
    still_running = ImageAnswer(202, "{}", "job_1")
    monkeypatch.setattr(generating, "answer_image", lambda *_: still_running)
    secret = engine.api._credentials["HTTP_AUTHORIZATION"].rpartition(" ")[2]
    together = Barrier(4)

    def create(_: int) -> int:
        try:
            client = engine.client(secret)
            together.wait(60)
            return int(client.post("/api/v1/images/", IMAGE, format="json").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        answers: list[Any] = sorted(pool.map(create, range(4)))
    assert answers == [202, 429, 429, 429]
    assert CapacityLease.objects.filter(released_at=None).count() == 1
