"""What every test stands on."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import TransactionTestCase

from dispatch import live_catalogue, polling, selection_facts
from tests.engine import Engine, running_engine

_flush = TransactionTestCase._fixture_teardown


def _flush_append_only_tables_too(self: TransactionTestCase) -> None:
    """Evidence can't be truncated; between two tests, and only there, its triggers sleep."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    try:
        _flush(self)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO catalog_cataloguerevision (id, number) VALUES (1, 0) ON CONFLICT DO NOTHING"
            )
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = origin")


@pytest.fixture(autouse=True)
def _nothing_kept_in_memory(settings: Any) -> None:
    """Each test has a database of its own, in which revision numbers and row ids begin again."""
    settings.POLL_GATHER_MS = 50  # a poll in a test has few others to wait for
    live_catalogue._kept.clear()
    selection_facts._kept_statistics.clear()
    selection_facts._kept_p95.clear()
    polling.forget_polls()


@pytest.fixture(autouse=True, scope="session")
def _flushing() -> None:
    TransactionTestCase._fixture_teardown = _flush_append_only_tables_too  # type: ignore[method-assign]


@pytest.fixture
def engine(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The whole engine on virtual time, with the demo catalogue."""
    with running_engine(monkeypatch) as running:
        yield running
