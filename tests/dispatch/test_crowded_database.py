"""A database that lets nobody in any more, or in which somebody forgot an open transaction."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection, connections

from config import embedded
from dispatch.models import Job
from tests.engine import Engine
from tests.journeys.processes import open_folder

CROWDED = "crowded"


@contextmanager
def account_without_connections() -> Iterator[None]:
    """What `too many connections` looks like, without using up those of the other tests."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {CROWDED} LOGIN CONNECTION LIMIT 0")
        yield
        cursor.execute(f"DROP ROLE {CROWDED}")


def in_a_thread_that_gets_none[T](work: Callable[[], T]) -> T:
    """Django's connections belong to threads."""
    results: list[T] = []

    def run() -> None:
        own = connections["default"]
        own.settings_dict = {**own.settings_dict, "USER": CROWDED}
        results.append(work())
        own.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def test_a_submission_that_gets_no_connection_is_told_to_come_again_and_leaves_nothing(
    engine: Engine,
) -> None:
    with account_without_connections():
        response = in_a_thread_that_gets_none(lambda: engine.submit(key="order-1"))
    assert (response.status_code, response.json()["code"]) == (503, "temporarily_unavailable")
    assert int(response.headers["Retry-After"]) >= 1
    assert not Job.objects.exists()
    assert engine.submit(key="order-1").status_code == 201, "the key was bound to nothing"


@pytest.mark.django_db
def test_the_embedded_server_ends_a_transaction_that_somebody_forgot_within_a_minute() -> None:
    """An old snapshot makes every claim step over the dead rows of the queue."""
    with open_folder() as home:
        server = embedded.start(home, durable=False)
        try:
            with psycopg.connect(server.url) as other:
                assert other.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)
        finally:
            server.stop()
