"""Slots in psycopg alone, by a way of locking; frozen, and nothing of the product in it.

`conditional`: one guarded UPDATE of a counter takes, another gives back. `counter`: the counter's row is
locked first and a lease is written too. `slot rows`: a row for each slot, of which the first that nobody
locks is taken."""

import os
import sys

import psycopg

from tests.benchmarks.leases_reserving import RESERVERS, SLOTS, Overbooked, serve_reservers

_TABLES = """
CREATE TABLE IF NOT EXISTS bench_counter (id int PRIMARY KEY, used int CHECK (used BETWEEN 0 AND 10));
CREATE TABLE IF NOT EXISTS bench_slot (id int PRIMARY KEY, taken boolean NOT NULL);
CREATE TABLE IF NOT EXISTS bench_lease (id bigserial PRIMARY KEY, slot int, released_at timestamptz);
CREATE INDEX IF NOT EXISTS bench_lease_live ON bench_lease (slot) WHERE released_at IS NULL;
INSERT INTO bench_counter VALUES (1, 0) ON CONFLICT DO NOTHING;
INSERT INTO bench_slot SELECT n, false FROM generate_series(1, 10) n ON CONFLICT DO NOTHING
"""


class Conditional:
    def __init__(self, _number: int) -> None:
        self.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

    def reserve(self) -> int:
        taken = self.connection.execute(
            "UPDATE bench_counter SET used = used + 1 WHERE id = 1 AND used < %s RETURNING used", [SLOTS]
        ).fetchone()
        return 0 if taken is None else _seen(taken[0])

    def release(self) -> None:
        self.connection.execute("UPDATE bench_counter SET used = used - 1 WHERE id = 1")

    def close(self) -> None:
        self.connection.close()


class Counter(Conditional):
    lease = 0

    def reserve(self) -> int:
        with self.connection.transaction():
            used = self.connection.execute(
                "SELECT used FROM bench_counter WHERE id = 1 FOR UPDATE"
            ).fetchone()
            assert used is not None
            if used[0] >= SLOTS:
                return 0
            self.connection.execute("UPDATE bench_counter SET used = used + 1 WHERE id = 1")
            self.lease = _new_lease(self.connection, 1)
        return _seen(used[0] + 1)

    def release(self) -> None:
        with self.connection.transaction():
            _end_lease(self.connection, self.lease)
            super().release()


class SlotRows(Conditional):
    slot = lease = 0

    def reserve(self) -> int:
        with self.connection.transaction():
            found = self.connection.execute(
                "SELECT id FROM bench_slot WHERE NOT taken LIMIT 1 FOR UPDATE SKIP LOCKED"
            ).fetchone()
            if found is None:
                return 0
            self.slot = found[0]
            self.connection.execute("UPDATE bench_slot SET taken = true WHERE id = %s", [self.slot])
            self.lease = _new_lease(self.connection, self.slot)
        return 1

    def release(self) -> None:
        with self.connection.transaction():
            _end_lease(self.connection, self.lease)
            self.connection.execute("UPDATE bench_slot SET taken = false WHERE id = %s", [self.slot])


def _new_lease(connection: psycopg.Connection, slot: int) -> int:
    row = connection.execute("INSERT INTO bench_lease (slot) VALUES (%s) RETURNING id", [slot]).fetchone()
    assert row is not None
    return int(row[0])


def _end_lease(connection: psycopg.Connection, lease: int) -> None:
    connection.execute("UPDATE bench_lease SET released_at = now() WHERE id = %s", [lease])


def _seen(used: int) -> int:
    if used > SLOTS:
        raise Overbooked(f"{used} of {SLOTS}")
    return 1


WAYS = {"conditional": Conditional, "counter": Counter, "slot rows": SlotRows}

if __name__ == "__main__":
    with psycopg.connect(os.environ["DATABASE_URL"]) as maker:
        maker.execute("SELECT pg_advisory_xact_lock(1)")
        for statement in _TABLES.split(";"):
            maker.execute(statement)
    serve_reservers(WAYS[sys.argv[1]], RESERVERS)
