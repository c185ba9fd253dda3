"""A migration beside traffic: it stands in nobody's way for long, and gets through in the end."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.apps import apps
from django.db import OperationalError, connection

from config import migrating
from config.migrating import TablesStayBusy, patiently

_MIGRATION_WAITS = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'dispatch_bell'::regclass AND NOT granted)"
)


@contextmanager
def reader() -> Iterator[psycopg.Connection]:
    """A transaction that has read a table and goes on."""
    with psycopg.connect(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"]) as other:
        other.execute("SELECT count(*) FROM dispatch_bell")
        yield other
        other.rollback()


def alter() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE dispatch_bell ALTER COLUMN cluster DROP DEFAULT")


@pytest.mark.django_db(transaction=True)
def test_traffic_behind_a_waiting_migration_stalls_for_less_than_two_seconds() -> None:
    stood_behind, waits_s = threading.Event(), [0.0]

    def traffic() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"]) as other:
            while max(waits_s) < 0.5:
                while other.execute(_MIGRATION_WAITS).fetchone() != (True,):
                    time.sleep(0.01)
                began_s = time.monotonic()
                other.execute("SELECT count(*) FROM dispatch_bell")
                other.rollback()
                waits_s.append(time.monotonic() - began_s)
            stood_behind.set()
            for _ in range(12):
                other.execute("SELECT count(*) FROM dispatch_bell")
                other.rollback()

    with reader() as long_transaction:
        pauses: list[float] = []
        served = threading.Thread(target=traffic, daemon=True)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if stood_behind.wait(1):  # or it came too late to that wait, and stands behind the next
                served.join()
                long_transaction.rollback()

        served.start()
        assert patiently(alter, pause) == len(pauses) + 1
    assert stood_behind.is_set(), "traffic met the migration"
    assert float(migrating.LOCK_TIMEOUT.removesuffix("ms")) < 2_000


@pytest.mark.django_db(transaction=True)
def test_a_table_that_stays_busy_is_told_and_nothing_else_is_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(migrating, "TRIES", 2)
    monkeypatch.setattr(migrating, "LOCK_TIMEOUT", "50ms")
    with reader(), pytest.raises(TablesStayBusy, match="nothing is half done"):
        patiently(alter, lambda _seconds: None)

    def breaks() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '10ms'; SELECT pg_sleep(1)")

    with pytest.raises(OperationalError, match="statement timeout"):
        patiently(breaks)
    with connection.cursor() as cursor:
        cursor.execute("RESET statement_timeout")
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


@pytest.mark.django_db
def test_migrations_leave_every_index_and_constraint_that_a_model_names() -> None:
    """Altering a key drops each index of its column alone, whatever it was made for."""
    missing = []
    for model in apps.get_models():
        named = {each.name for each in (*model._meta.indexes, *model._meta.constraints)}
        with connection.cursor() as cursor:
            known = connection.introspection.get_constraints(cursor, model._meta.db_table)
        missing += [f"{model._meta.label}: {name}" for name in named - known.keys()]
    assert missing == []
