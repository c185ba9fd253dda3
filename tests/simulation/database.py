"""The simulation's database: awaits at every statement and commit, a fast way back, and a record of changes.

The record is kept by triggers that only this database has; it is what the checker reads beside the rows."""

from collections.abc import Callable, Iterable
from typing import Any

import psycopg
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.rows import dict_row

from tests.simulation.scheduler import Scheduler, Worker

# What the record keeps of each table; a change of anything else is not recorded.
_RECORDED = {
    "dispatch_job": ("state", "state_version", "cancel_requested_at", "public_id"),
    "dispatch_attempt": (
        "state",
        "state_version",
        "job_id",
        "number",
        "public_id",
        "channel_id",
        "supply_id",
        "body_sent_at",
        "error_code",
    ),
    "dispatch_capacitylease": (
        "state",
        "fence",
        "attempt_id",
        "channel_id",
        "supply_id",
        "group_id",
        "renewed_at",
        "expires_at",
        "released_at",
    ),
    "catalog_channel": ("state", "concurrency"),
    "catalog_supply": ("state", "concurrency"),
    "catalog_capacitygroup": ("capacity",),
    "health_channelhealth": ("state", "not_before"),
    "health_supplyhealth": ("state", "not_before"),
}
_KEY_COLUMNS = {"health_channelhealth": "channel_id", "health_supplyhealth": "supply_id"}
_LEFT_ALONE = ("django_migrations", "django_content_type", "auth_permission")

LOST = "server closed the connection unexpectedly (the simulation's doing)"


class Database:
    """The scheduler's own connection: reads what is committed, and nothing waits for it."""

    def __init__(self) -> None:
        values = connection.get_connection_params()
        wanted = ("dbname", "host", "user", "port", "password")
        self.link = psycopg.connect(
            **{name: values[name] for name in wanted if values.get(name)},
            autocommit=True,
            row_factory=dict_row,
        )
        self.link.execute('LISTEN "frameyard_queue_control"')
        self._restore = ""

    def words(self) -> set[str]:
        """The tasks that committed transactions have asked for by a word since the last question.

        The answer to a statement comes after every word of what was committed before it: so that a life heard
        again hears the same."""
        self.link.execute("SELECT")
        return {word.payload for word in self.link.notifies(timeout=0) if word.payload}

    def break_off(self, backend: int) -> None:
        """Ends a session at the server, and waits until its locks are gone."""
        self.link.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])

    def end_lock_holders(self) -> set[int]:
        """Ends the sessions that still hold a lock of their own though nothing runs; their process ids."""
        found = self.rows(
            "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        for row in found:
            self.break_off(row["pid"])
        return {row["pid"] for row in found}

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return self.link.execute(query, values or None).fetchall()  # type: ignore[arg-type]

    def row(self, query: str, *values: Any) -> dict[str, Any]:
        found = self.link.execute(query, values or None).fetchone()  # type: ignore[arg-type]
        return found or {}

    def waits_for_lock(self, backend: int) -> bool:
        return bool(self.rows("SELECT 1 FROM pg_locks WHERE pid = %s AND NOT granted", backend))

    def prepare(self) -> None:
        """Keeps the rows as they are now for every life to begin with, and lets changes be recorded."""
        self._record()
        self._restore = self._way_back()

    def begin_record(self) -> None:
        """Of an installation that is used once: the rows as they are now, and every change from here on."""
        self._record()
        for table, columns in _RECORDED.items():
            self.link.execute(_present(table, columns))  # type: ignore[call-overload]

    def _record(self) -> None:
        run = self.link.execute
        run("CREATE SCHEMA simulation")
        run(
            "CREATE TABLE simulation.record (seq bigserial PRIMARY KEY, xid bigint, kind text, id bigint,"
            " old jsonb, new jsonb)"
        )
        for table, columns in _RECORDED.items():
            for statement in _recording(table, columns):
                run(statement)  # type: ignore[call-overload]

    def _way_back(self) -> str:
        statements = ["SET session_replication_role = replica"]
        tables = [
            row["name"]
            for row in self.rows(
                "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            )
            if row["name"] not in _LEFT_ALONE
        ]
        for table in tables:
            self.link.execute(f"CREATE TABLE simulation.{table} AS TABLE public.{table}")  # type: ignore[call-overload]
            statements.append(f"DELETE FROM public.{table}")
            if self.rows(f"SELECT 1 FROM public.{table} LIMIT 1"):
                statements.append(f"INSERT INTO public.{table} TABLE simulation.{table}")
        for row in self.rows(
            "SELECT sequencename AS name, last_value FROM pg_sequences WHERE schemaname = 'public'"
        ):
            called = "true" if row["last_value"] is not None else "false"
            statements.append(f"SELECT setval('public.{row['name']}', {row['last_value'] or 1}, {called})")
        statements += [
            "DELETE FROM simulation.record",
            "SELECT setval('simulation.record_seq_seq', 1, false)",
            "SET session_replication_role = origin",
        ]
        statements += [_present(table, columns) for table, columns in _RECORDED.items()]
        return ";".join(statements)

    def restore(self) -> None:
        """Every table and every sequence as they were."""
        self.link.execute(self._restore)  # type: ignore[call-overload]

    def record(self) -> list[dict[str, Any]]:
        return self.rows("SELECT seq, xid, kind, id, old, new FROM simulation.record ORDER BY seq")


def _document(row: str, columns: Iterable[str]) -> str:
    return "jsonb_build_object(" + ", ".join(f"'{name}', {row}.{name}" for name in columns) + ")"


def _present(table: str, columns: Iterable[str]) -> str:
    """The rows that a life begins with, as its first records."""
    key = _KEY_COLUMNS.get(table, "id")
    return (
        f"INSERT INTO simulation.record (xid, kind, id, new)"
        f" SELECT 0, '{table}', {key}, {_document(table, columns)} FROM {table} ORDER BY {key}"
    )


def _recording(table: str, columns: Iterable[str]) -> list[str]:
    def document(row: str) -> str:
        return _document(row, columns)

    key = _KEY_COLUMNS.get(table, "id")
    changed = f"({', '.join(f'OLD.{name}' for name in columns)}) IS DISTINCT FROM ({', '.join(f'NEW.{name}' for name in columns)})"  # noqa: E501
    function = f"simulation.of_{table}"
    insert = (
        "INSERT INTO simulation.record (xid, kind, id, old, new) VALUES (pg_current_xact_id()::text::bigint,"
    )
    return [
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF TG_OP = 'INSERT' THEN {insert} '{table}', NEW.{key}, NULL, {document('NEW')});"
        f" ELSE {insert} '{table}', NEW.{key}, {document('OLD')}, {document('NEW')}); END IF;"
        f" RETURN NULL; END $$",
        f"CREATE TRIGGER simulation_insert AFTER INSERT ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION {function}()",
        f"CREATE TRIGGER simulation_update AFTER UPDATE ON {table} FOR EACH ROW WHEN ({changed})"
        f" EXECUTE FUNCTION {function}()",
    ]


class Awaits:
    """Makes a worker's connection await at each statement, and before and after each commit."""

    def __init__(self, database: Database, rewritten: Callable[[str], str]) -> None:
        self._database, self._rewritten = database, rewritten
        self._scheduler: Scheduler
        self.ended: set[int] = set()  # sessions that were broken off while their workers were idle

    def over(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def attach(self, worker: Worker) -> None:
        if worker.backend in self.ended:
            self.ended.discard(worker.backend)
            self._end(connections["default"].connection)
            del connections["default"]
        link: Any = connections["default"]
        if getattr(link, "awaits", None) is not self:
            link.awaits = self
            link.execute_wrappers.append(self._execute)
            link._commit = lambda: self._commit(link)
            link._rollback = lambda: self._rollback(link)
        link.ensure_connection()
        worker.backend = link.connection.info.backend_pid

    def finished(self, worker: Worker) -> None:
        """What became of the connection of a worker that ended: a dead one's is broken off by the server."""
        link: Any = connections["default"]
        broken = link.connection is None or link.connection.closed or worker.killed
        if broken or link.in_atomic_block or link.needs_rollback:
            self._end(link.connection)
            del connections["default"]

    def _end(self, raw: Any) -> None:
        if raw is not None and not raw.closed:
            self._database.break_off(raw.info.backend_pid)
            raw.close()

    def end_session(self) -> None:
        """Of the worker whose thread this is: what was not committed is undone by the server."""
        self._end(connections["default"].connection)

    def _execute(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        worker = self._scheduler.current
        if worker is None:
            return execute(sql, params, many, context)
        sql = self._rewritten(sql)
        link = context["connection"]
        if link.connection is not None:
            worker.backend = link.connection.info.backend_pid
        self._scheduler.point("statement", sql)
        self._scheduler.enter_statement()
        try:
            result = execute(sql, params, many, context)
        finally:
            self._scheduler.leave_statement()
        if link.get_autocommit() and not sql.startswith("SELECT"):
            self._scheduler.point("committed", sql)
        self._give_way()
        return result

    def _commit(self, link: BaseDatabaseWrapper) -> None:
        self._scheduler.point("commit")
        if link.connection is not None:
            # Deferred foreign keys are looked at now, so that a commit may wait for a lock as well.
            self._scheduler.enter_statement()
            try:
                with link.wrap_database_errors:
                    link.connection.commit()
            finally:
                self._scheduler.leave_statement()
        self._scheduler.point("committed")
        self._give_way()

    def _rollback(self, link: BaseDatabaseWrapper) -> None:
        if link.connection is not None:
            with link.wrap_database_errors:
                link.connection.rollback()
        self._give_way()

    def _give_way(self) -> None:
        """Locks may just have been released: those who waited for them go on first, always in one order."""
        if self._scheduler.any_locked:
            self._scheduler.park()


def fall_victim(code: str) -> None:
    """The server ends this transaction as it ends a deadlock's (40P01) or a conflict's (40001) victim."""
    raw: Any = connections["default"].connection
    try:
        raw.execute(f"DO $$ BEGIN RAISE EXCEPTION 'chosen as victim' USING ERRCODE = '{code}'; END $$")
    except psycopg.errors.OperationalError as error:
        raise OperationalError("deadlock detected (the simulation's doing)") from error
