"""Months of past work, written by set-based SQL: ended jobs with their attempts, evidence, provider events,
results and both books, as service would have left them.

What each job came to is drawn first, into tables of this connection alone; the rows of all others are
selected from these (`config.history_rows`). One transaction holds whole jobs with the balances that follow
from them, so that an end at any moment leaves nothing half."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from psycopg.types.json import Jsonb

from billing.models import Customer
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.providers.errors import INTERNAL_PERMANENT, OVERLOADED, SAFETY_INPUT
from config.history_rows import BALANCES, IN_ORDER
from config.history_ways import Way, ways_of
from dispatch.hours import WORK_KEPT_FOR
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt, Job
from dispatch.services.count_hours import count_since
from dispatch.words import customer_error

CUSTOMERS: Final = 20
NAME: Final = "Past customer"
BATCH: Final = 25_000  # jobs of one transaction
_SINCE_LAST: Final = timedelta(minutes=25)  # the newest job has ended by now, even by its deadline

type Progress = Callable[[int], object]

_TABLES: Final = """
CREATE TEMP TABLE history_who (number int, customer_id bigint, api_key_id bigint);
CREATE TEMP TABLE history_fate (
    fate text, job_state text, category text, scope text, code text, retryable boolean,
    customer_code text, customer_message text);
CREATE TEMP TABLE history_job (
    number bigint, job_id bigint, job text, first_way int, second_way int, fate text, customer_id bigint,
    api_key_id bigint, created_at timestamptz, started_at timestamptz, works interval);
CREATE TEMP TABLE history_attempt (
    attempt_id bigint, attempt text, round_id bigint, job_id bigint, job text, customer_id bigint,
    number int, way int, state text, fate text, created_at timestamptz, sent_at timestamptz,
    accepted_at timestamptz, generated_at timestamptz, finished_at timestamptz, cost_micros bigint);
CREATE TEMP TABLE history_snapshot (way int, hour timestamptz, snapshot jsonb);
CREATE TEMP TABLE history_ending (
    job_id bigint, attempt_id bigint, way int, is_delivered boolean, finished_at timestamptz,
    cost_micros bigint, reserved_micros bigint, charged_micros bigint);
CREATE FUNCTION pg_temp.history_id(prefix text, at timestamptz) RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT prefix || '_' || lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
          || left(md5(random()::text), 14) $$"""

_DRAWN: Final = ("history_job", "history_attempt", "history_snapshot", "history_ending")

# More of them each day, in the rhythm of days, and in the order of their numbers.
_JOBS: Final = f"""
INSERT INTO history_job
WITH dice AS MATERIALIZED (
    SELECT number, random() AS way, random() AS fate, random() AS wait, random() AS work, random() AS who,
           %(since)s::timestamptz
           + %(span_s)s * power((number - random()) / %(jobs)s, 0.8) * interval '1 second' AS at
    FROM generate_series(%(first)s, %(last)s) AS number),
timed AS (
    SELECT *, least(%(until)s, at + 9000 * interval '1 second'
                               * sin(2 * pi() * extract(epoch FROM at) / 86400)) AS created_at
    FROM dice)
SELECT timed.number, nextval(pg_get_serial_sequence('dispatch_job', 'id')),
       pg_temp.history_id('job', created_at), first.id, second.id,
       CASE WHEN fate < 0.88 THEN 'delivered' WHEN fate < 0.92 AND second.id IS NOT NULL THEN 'switched'
            WHEN fate < 0.95 THEN 'failed' WHEN fate < 0.97 THEN 'refused'
            WHEN fate < 0.99 THEN 'cancelled' ELSE 'expired' END,
       who.customer_id, who.api_key_id, created_at,
       created_at + least(120, 1 - ln(1 - wait) * 6) * interval '1 second',
       (30 + 150 * work * work) * interval '1 second'
FROM timed JOIN history_way AS first ON timed.way >= first.low AND timed.way < first.high
LEFT JOIN history_way AS second ON second.after = first.id
JOIN history_who AS who ON who.number = floor(timed.who * timed.who * {CUSTOMERS})
ORDER BY timed.number"""  # noqa: S608 - our own constant

_ATTEMPTS: Final = """
INSERT INTO history_attempt
WITH told AS (
    SELECT job_id, job, customer_id, fate, works, 1 AS number, first_way AS way, started_at AS at,
           CASE fate WHEN 'delivered' THEN 'succeeded' ELSE 'failed' END AS state,
           fate NOT IN ('switched', 'refused') AS is_taken
    FROM history_job WHERE fate NOT IN ('cancelled', 'expired')
    UNION ALL
    SELECT job_id, job, customer_id, fate, works, 2, second_way, started_at + interval '2 seconds',
           'succeeded', true
    FROM history_job WHERE fate = 'switched')
SELECT nextval(pg_get_serial_sequence('dispatch_attempt', 'id')), pg_temp.history_id('att', at),
       nextval(pg_get_serial_sequence('dispatch_selectionround', 'id')), job_id, job, customer_id, number,
       told.way, state, fate, at, at + interval '0.2 seconds',
       CASE WHEN is_taken THEN at + interval '1.1 seconds' END,
       CASE WHEN state = 'succeeded' THEN at + works END,
       CASE WHEN is_taken THEN at + works + interval '4 seconds' ELSE at + interval '1 second' END,
       CASE WHEN state = 'succeeded' THEN way.quote_micros WHEN is_taken THEN 0 END
FROM told JOIN history_way AS way ON way.id = told.way
ORDER BY at"""

# As of the begin of its hour: a document of its own for each round would be packed anew each time, which took
# more than everything else together; one that is packed already is copied as it is.
_SNAPSHOTS: Final = """
INSERT INTO history_snapshot
SELECT taken.way, taken.hour, jsonb_set(way.snapshot, '{now}', to_jsonb(taken.hour))
FROM (SELECT DISTINCT way, date_trunc('hour', created_at) AS hour FROM history_attempt) AS taken
JOIN history_way AS way ON way.id = taken.way"""

_ENDINGS: Final = """
INSERT INTO history_ending
SELECT job.job_id, last.attempt_id, coalesce(last.way, job.first_way),
       coalesce(last.state = 'succeeded', false),
       coalesce(last.finished_at, CASE job.fate WHEN 'expired' THEN job.created_at + interval '20 minutes'
                                  ELSE job.started_at END),
       coalesce(last.cost_micros, 0), way.quote_micros * 3 / 2,
       CASE WHEN last.state = 'succeeded'
            THEN CASE way.tier WHEN 'degraded' THEN way.quote_micros * 9 / 8 ELSE way.quote_micros * 3 / 2 END
            ELSE 0 END
FROM history_job AS job
LEFT JOIN history_attempt AS last
       ON last.job_id = job.job_id AND last.number = CASE job.fate WHEN 'switched' THEN 2 ELSE 1 END
JOIN history_way AS way ON way.id = coalesce(last.way, job.first_way)"""

_COLUMN_TYPES: Final[Mapping[Any, str]] = {int: "bigint", int | None: "bigint", float: "float", str: "text"}
_KINDS: Final = {"switched": OVERLOADED, "failed": INTERNAL_PERMANENT, "refused": SAFETY_INPUT}
_JOB_STATES: Final = {
    "delivered": JobState.SUCCEEDED,
    "switched": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "refused": JobState.FAILED,
    "cancelled": JobState.CANCELLED,
    "expired": JobState.EXPIRED,
}


def has_real_jobs() -> bool:
    """Whether somebody other than the customers of this module ever submitted a job."""
    theirs = Job.objects.filter(customer=OuterRef("pk"))
    return Customer.objects.exclude(name__startswith=NAME).filter(Exists(theirs)).exists()


def write_history(jobs: int, days: int, now: datetime, seed: float, progress: Progress) -> None:
    """So many ended jobs of the last so many days. Raises LookupError where no supply can execute anything.

    `seed` from -1 to 1: the same one draws alike. `progress` is told how many are stored, after each
    transaction."""
    ways = ways_of(now)
    if not any(way.after is None for way in ways):
        raise LookupError("There is no public model that a supply could execute.")
    since, until = now - timedelta(days=days), now - _SINCE_LAST
    with connection.cursor() as cursor:
        cursor.execute("DISCARD TEMP")
        cursor.execute(_TABLES)
        cursor.execute("SELECT setseed(%s)", [seed])
        _store_ways(cursor, ways)
        _store_fates(cursor)
        _store_customers(cursor, since, now)
    told = {"since": since, "until": until, "span_s": (until - since).total_seconds(), "jobs": jobs}
    for first in range(1, jobs + 1, BATCH):
        last = min(first + BATCH - 1, jobs)
        _store_jobs({**told, "first": first, "last": last})
        progress(last)
    count_since(max(since, now - WORK_KEPT_FOR), now)  # figures by the hour, which count the past only once


def settle_statistics() -> None:
    """As after a while of service: pages clean, statistics known."""
    with connection.cursor() as cursor:
        for table in dict.fromkeys(rows.model._meta.db_table for rows in IN_ORDER):
            cursor.execute(f"VACUUM (ANALYZE) {table}")


def _store_jobs(told: Mapping[str, Any]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # A third of the time goes into looking up each foreign key, all of which follow from the statements;
        # whoever may not skip that waits for it.
        cursor.execute("SELECT has_parameter_privilege('session_replication_role', 'SET')")
        if cursor.fetchone()[0]:
            cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SET LOCAL work_mem = '64MB'")  # both books are sorted by time
        cursor.execute(f"TRUNCATE {', '.join(_DRAWN)}")
        cursor.execute(_JOBS, told)
        for statement in (_ATTEMPTS, _SNAPSHOTS, _ENDINGS):
            cursor.execute(statement)
        for table in _DRAWN:
            cursor.execute(f"ANALYZE {table}")
        for rows in IN_ORDER:
            cursor.execute(rows.statement())
        cursor.execute(BALANCES)


def _store_ways(cursor: Any, ways: Sequence[Way]) -> None:
    """Each first attempt's way with its span between 0 and 1: as wide as it is often taken."""
    columns = [f"{field.name} {_COLUMN_TYPES.get(field.type, 'jsonb')}" for field in fields(Way)]
    cursor.execute(f"CREATE TEMP TABLE history_way (id int, low float, high float, {', '.join(columns)})")
    whole, high = sum(way.weight for way in ways), 0.0
    for number, way in enumerate(ways):
        low, high = high, high + way.weight / whole
        values = [number, low, high, *(_stored(getattr(way, field.name)) for field in fields(Way))]
        cursor.execute(f"INSERT INTO history_way VALUES ({', '.join(['%s'] * len(values))})", values)  # noqa: S608
    # What is left of 1 by rounding.
    cursor.execute(
        "UPDATE history_way SET high = 2"
        " WHERE low < high AND high = (SELECT max(high) FROM history_way WHERE low < high)"
    )


def _stored(value: Any) -> Any:
    if isinstance(value, tuple):
        value = list(value)
    return Jsonb(value) if isinstance(value, list | dict) else value


def _store_fates(cursor: Any) -> None:
    for fate, state in _JOB_STATES.items():
        kind = _KINDS.get(fate)
        error = (kind.category, kind.scope, kind.code, kind.retryable) if kind else ("", "", "", False)
        values = (fate, state, *error, *_said(state, error[0], error[2]))
        cursor.execute(f"INSERT INTO history_fate VALUES ({', '.join(['%s'] * len(values))})", values)  # noqa: S608


def _said(state: JobState, category: str, code: str) -> tuple[str, str]:
    """What the customer is told of such an end."""
    if state is JobState.SUCCEEDED:
        return "", ""
    last = Attempt(state=AttemptState.FAILED, error_category=category, error_code=code)
    return customer_error(state, last, access_revoked=False)


def _store_customers(cursor: Any, since: datetime, now: datetime) -> None:
    """Their keys are revoked: nobody knows the secrets."""
    for number in range(CUSTOMERS):
        customer = create_customer(f"{NAME} {number + 1}", since)
        key = customer.api_keys.first() or issue_key(customer, name="past work")[0]
        if key.revoked_at is None:
            type(key).objects.filter(pk=key.pk).update(revoked_at=now)
        cursor.execute("INSERT INTO history_who VALUES (%s, %s, %s)", [number, customer.pk, key.pk])
