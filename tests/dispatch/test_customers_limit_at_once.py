"""A scan and a request for an image take slots of one customer at once: together no more than it may hold."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from billing.models import Customer
from catalog.models import SupplyBinding
from catalog.revision import bump_revision
from dispatch.models import CapacityLease
from dispatch.services import dispatch_scan, serve_queue
from dispatch.services import generate_image as generating
from tests.engine import IMAGE, Engine
from tests.waiting import until_somebody_waits

APART = ("singapore-seedance-2-0", "beijing-seedream-4-0")  # no channel of one is the other's


class Died(Exception):
    """The request's thread ended when its slot was taken, so that it keeps it."""


@pytest.fixture
def engine_of_one(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """One slot for the customer; a video that waits; images that keep their slots."""
    Customer.objects.filter(pk=engine.customer.pk).update(max_in_flight=1)
    SupplyBinding.objects.exclude(supply__slug__in=APART).delete()
    bump_revision()

    def dies(*_: Any, **__: Any) -> None:
        raise Died

    monkeypatch.setattr(generating, "submit", dies)
    engine.job()
    return engine


def held() -> int:
    return CapacityLease.objects.filter(released_at=None).count()


def image(engine: Engine) -> int:
    """What is answered, in a thread with a connection of its own; 0 where it took the slot."""
    try:
        client = APIClient()
        client.credentials(**engine.api._credentials)  # type: ignore[attr-defined]
        return client.post("/api/v1/images/", IMAGE, format="json").status_code
    except Died:
        return 0
    finally:
        connection.close()


def after(monkeypatch: pytest.MonkeyPatch, name: str, then: Callable[[], None]) -> None:
    """Once, when the scan has done that."""
    work = getattr(serve_queue, name)

    def done(*given: Any) -> Any:
        monkeypatch.setattr(serve_queue, name, work)
        result = work(*given)
        then()
        return result

    monkeypatch.setattr(serve_queue, name, done)


def test_an_image_that_comes_when_the_scan_has_counted_keeps_the_scan_from_the_last_slot(
    engine_of_one: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as pool:
        answers: list[int] = []
        after(monkeypatch, "in_flight", lambda: answers.append(pool.submit(image, engine_of_one).result()))
        assert dispatch_scan.scan(lambda: engine_of_one.now) == 0
    assert (answers, held()) == ([0], 1)
    assert dispatch_scan.scan(lambda: engine_of_one.now) == 0


def test_an_image_waits_for_a_scan_that_is_about_to_take_the_last_slot_and_is_refused(
    engine_of_one: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked: list[Future[int]] = []

        def ask() -> None:
            asked.append(pool.submit(image, engine_of_one))
            until_somebody_waits(asked[0])

        after(monkeypatch, "write_batch", ask)
        assert dispatch_scan.scan(lambda: engine_of_one.now) == 1
        assert (asked[0].result(), held()) == (429, 1)
