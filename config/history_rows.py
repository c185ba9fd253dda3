"""What past work is in each table: column by column, selected from what `config.history` has drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.models import Field, Model
from psycopg import sql

from billing.models import CreditEntry, ProviderUsageEntry
from catalog.fields import PublicIdField
from dispatch.models import Asset, Attempt, CapacityLease, Job, ProviderEvent, ProviderJob, SelectionRound

_ATTEMPTS: Final = "history_attempt AS attempt JOIN history_way AS way ON way.id = attempt.way"
_FATES: Final = "JOIN history_fate AS fate ON fate.fate = attempt.fate"
_ENDED: Final = "history_job AS job JOIN history_ending AS ending ON ending.job_id = job.job_id"


@dataclass(frozen=True)
class Rows:
    """Columns that are not named get what the ORM would give them."""

    model: type[Model]
    source: str
    values: Mapping[str, str]

    def statement(self) -> str:
        told = {**_defaults(self.model, self.values), **self.values}
        columns = ", ".join(f'"{name}"' for name in told)
        table = self.model._meta.db_table
        return f"INSERT INTO {table} ({columns}) SELECT {', '.join(told.values())} FROM {self.source}"  # noqa: S608


def _defaults(model: type[Model], told: Mapping[str, str]) -> dict[str, str]:
    """As literals: the database itself knows few of them."""
    found: dict[str, str] = {}
    for field in model._meta.concrete_fields:
        column = str(field.column)
        if column in told or field.primary_key or field.null or field.has_db_default():
            continue
        if isinstance(field, PublicIdField):
            found[column] = f"pg_temp.history_id('{field.prefix}', now())"
        elif field.has_default() or field.empty_strings_allowed:
            found[column] = _literal(field)
    return found


def _literal(field: "Field[Any, Any]") -> str:
    value = field.get_db_prep_save(field.get_default(), connection)
    return sql.Literal(value).as_string(connection.connection)


JOBS: Final = Rows(
    Job,
    f"{_ENDED} JOIN history_way AS way ON way.id = ending.way"
    " JOIN history_fate AS fate ON fate.fate = job.fate",
    {
        "id": "job.job_id",
        "public_id": "job.job",
        "customer_id": "job.customer_id",
        "api_key_id": "job.api_key_id",
        "project": "(ARRAY['', 'spring', 'launch', 'archive'])[1 + job.number % 4]",
        "end_user": "'user-' || job.number % 300",
        "public_model_id": "way.public_model_id",
        "model_revision": "way.model_revision",
        "modality": "way.modality",
        "request": "way.request",
        "request_hash": "way.request_hash",
        "content_fingerprint": "md5(job.job) || md5(job.number::text)",
        "state": "fate.job_state",
        "state_version": "CASE WHEN ending.attempt_id IS NULL THEN 2 ELSE 5 END",
        "dispatch_deadline_at": "job.created_at + interval '20 minutes'",
        "estimated_ms": "60000",
        "adopted_attempt_id": "CASE WHEN ending.is_delivered THEN ending.attempt_id END",
        "requested_profile": "way.requested_profile",
        "actual_profile": "CASE WHEN ending.is_delivered THEN way.actual_profile ELSE '' END",
        "dropped_inputs": "CASE WHEN ending.is_delivered THEN way.dropped_inputs ELSE '[]' END",
        "error_code": "fate.customer_code",
        "error_message": "fate.customer_message",
        "reserved_micros": "ending.reserved_micros",
        "charged_micros": "ending.charged_micros",
        "provider_cost_micros": "ending.cost_micros",
        "created_at": "job.created_at",
        "started_at": "CASE WHEN ending.attempt_id IS NOT NULL THEN job.started_at END",
        "finished_at": "ending.finished_at",
    },
)

ROUNDS: Final = Rows(
    SelectionRound,
    "history_attempt AS attempt JOIN history_snapshot AS taken"
    " ON taken.way = attempt.way AND taken.hour = date_trunc('hour', attempt.created_at)",
    {
        "id": "attempt.round_id",
        "public_id": "pg_temp.history_id('rnd', attempt.created_at)",
        "job_id": "attempt.job_id",
        "attempt_number": "attempt.number",
        "number": "attempt.number",
        "snapshot": "taken.snapshot",
        "outcome": "'chosen'",
        "created_at": "attempt.created_at",
    },
)

ATTEMPTS: Final = Rows(
    Attempt,
    f"{_ATTEMPTS} {_FATES}",
    {
        "id": "attempt.attempt_id",
        "public_id": "attempt.attempt",
        "job_id": "attempt.job_id",
        "number": "attempt.number",
        "selection_round_id": "attempt.round_id",
        "supply_id": "way.supply_id",
        "channel_id": "way.channel_id",
        "tier": "way.tier",
        "capability_version_id": "way.capability_version_id",
        "cost_rule_version_id": "way.cost_rule_version_id",
        "policy_id": "way.policy_id",
        "model_revision": "way.model_revision",
        "sent_request": "way.sent_request",
        "compile_plan": "way.compile_plan",
        "client_request_key": "attempt.attempt",
        "request_hash": "way.request_hash",
        "quote_micros": "way.quote_micros",
        "quote_currency": "way.quote_currency",
        "state": "attempt.state",
        "state_version": "6",
        "error_category": "CASE attempt.state WHEN 'failed' THEN fate.category ELSE '' END",
        "error_scope": "CASE attempt.state WHEN 'failed' THEN fate.scope ELSE '' END",
        "error_code": "CASE attempt.state WHEN 'failed' THEN fate.code ELSE '' END",
        "error_message": "CASE attempt.state WHEN 'failed' THEN fate.code ELSE '' END",
        "retryable": "attempt.state = 'failed' AND fate.retryable",
        "cost_micros": "attempt.cost_micros",
        "evidence_at": "coalesce(attempt.generated_at, attempt.finished_at)",
        "created_at": "attempt.created_at",
        "request_started_at": "attempt.sent_at",
        "body_sent_at": "attempt.sent_at + interval '0.1 seconds'",
        "accepted_at": "attempt.accepted_at",
        "generated_at": "attempt.generated_at",
        "finished_at": "attempt.finished_at",
    },
)

LEASES: Final = Rows(
    CapacityLease,
    _ATTEMPTS,
    {
        "token": "pg_temp.history_id('lse', attempt.created_at)",
        "attempt_id": "attempt.attempt_id",
        "channel_id": "way.channel_id",
        "supply_id": "way.supply_id",
        "group_id": "way.group_id",
        "customer_id": "attempt.customer_id",
        "state": "'released'",
        "granted_at": "attempt.created_at",
        "renewed_at": "coalesce(attempt.accepted_at, attempt.created_at)",
        "expires_at": "attempt.finished_at + interval '5 minutes'",
        "released_at": "coalesce(attempt.generated_at, attempt.finished_at)",
        "outcome": "CASE attempt.state WHEN 'succeeded' THEN 'completed' ELSE 'failed' END",
    },
)

PROVIDER_JOBS: Final = Rows(
    ProviderJob,
    f"{_ATTEMPTS} WHERE attempt.accepted_at IS NOT NULL",
    {
        "attempt_id": "attempt.attempt_id",
        "channel_id": "way.channel_id",
        "provider_job_id": "'past-' || attempt.attempt",
        "raw_status": "attempt.state",
        "status": "attempt.state",
        "polls": "12",
        "submitted_at": "attempt.sent_at",
        "polled_at": "attempt.finished_at",
        "completed_at": "attempt.finished_at",
    },
)

SUBMIT_EVENTS: Final = Rows(
    ProviderEvent,
    _ATTEMPTS,
    {
        "attempt_id": "attempt.attempt_id",
        "channel_id": "way.channel_id",
        "kind": "'submit'",
        "outcome": "CASE WHEN attempt.accepted_at IS NULL THEN 'rejected' ELSE 'accepted' END",
        "raw": "jsonb_build_object('id', 'past-' || attempt.attempt)",
        "at": "coalesce(attempt.accepted_at, attempt.finished_at)",
    },
)

POLL_EVENTS: Final = Rows(
    ProviderEvent,
    f"{_ATTEMPTS} WHERE attempt.accepted_at IS NOT NULL",
    {
        "attempt_id": "attempt.attempt_id",
        "channel_id": "way.channel_id",
        "kind": "'poll'",
        "outcome": "attempt.state",
        "raw": "jsonb_build_object('id', 'past-' || attempt.attempt, 'status', attempt.state)",
        "at": "coalesce(attempt.generated_at, attempt.finished_at)",
    },
)

# The row says what the file was; there never was one.
ASSETS: Final = Rows(
    Asset,
    f"{_ATTEMPTS} WHERE attempt.state = 'succeeded'",
    {
        "public_id": "pg_temp.history_id('ast', attempt.finished_at)",
        "customer_id": "attempt.customer_id",
        "attempt_id": "attempt.attempt_id",
        "kind": "'output'",
        "content_type": "CASE way.modality WHEN 'video' THEN 'video/mp4' ELSE 'image/png' END",
        "size_bytes": "1000000 + attempt.attempt_id % 1000000",
        "sha256": "md5(attempt.attempt) || md5(attempt.job)",
        "width": "1920",
        "height": "1080",
        "duration_ms": "CASE way.modality WHEN 'video' THEN 5000 END",
        "path": "'outputs/' || attempt.attempt",
        "created_at": "attempt.finished_at",
        "expires_at": "attempt.finished_at",
        "removed_at": "attempt.finished_at",
    },
)

USAGE: Final = Rows(
    ProviderUsageEntry,
    f"{_ATTEMPTS} CROSS JOIN LATERAL (VALUES ('expected', way.quote_micros, attempt.accepted_at),"
    " ('reversal', -way.quote_micros, attempt.finished_at),"
    " ('settled', attempt.cost_micros, attempt.finished_at))"
    " AS entry (kind, micros, at) WHERE attempt.accepted_at IS NOT NULL ORDER BY entry.at",
    {
        "attempt": "attempt.attempt",
        "supply_id": "way.supply_id",
        "kind": "entry.kind",
        "amount_micros": "entry.micros",
        "currency": "way.quote_currency",
        "cost_rule_version_id": "way.cost_rule_version_id",
        "at": "entry.at",
    },
)

CREDIT: Final = Rows(
    CreditEntry,
    f"{_ENDED} JOIN billing_customer AS customer ON customer.id = job.customer_id"
    " CROSS JOIN LATERAL (VALUES ('reserve', -ending.reserved_micros, job.created_at, ''),"
    " ('release', ending.reserved_micros, ending.finished_at, 'the job ended'),"
    " ('charge', -ending.charged_micros, ending.finished_at, 'the job ended'))"
    " AS entry (kind, micros, at, note) WHERE entry.micros <> 0 ORDER BY entry.at",
    {
        "customer_id": "job.customer_id",
        "job": "job.job",
        "kind": "entry.kind",
        "amount_micros": "entry.micros",
        "currency": "customer.currency",
        "note": "entry.note",
        "at": "entry.at",
    },
)

# As much as was charged, in whole hundreds of the currency, before the first of these jobs.
DEPOSITS: Final = Rows(
    CreditEntry,
    f"(SELECT job.customer_id, min(job.created_at) AS at, sum(ending.charged_micros) AS charged FROM {_ENDED}"  # noqa: S608
    " GROUP BY 1) AS spent JOIN billing_customer AS customer ON customer.id = spent.customer_id"
    " WHERE charged > 0",
    {
        "customer_id": "spent.customer_id",
        "kind": "'deposit'",
        "amount_micros": "ceil(spent.charged / 1e8) * 1e8",
        "currency": "customer.currency",
        "note": "'topped up'",
        "at": "spent.at - interval '1 minute'",
    },
)

BALANCES: Final = f"""
UPDATE billing_customer AS customer
SET balance_micros = balance_micros + ceil(spent.charged / 1e8)::bigint * 100000000 - spent.charged
FROM (SELECT job.customer_id, sum(ending.charged_micros)::bigint AS charged FROM {_ENDED} GROUP BY 1) AS spent
WHERE spent.customer_id = customer.id"""  # noqa: S608 - our own words

IN_ORDER: Final = (
    DEPOSITS, JOBS, ROUNDS, ATTEMPTS, LEASES, PROVIDER_JOBS, SUBMIT_EVENTS, POLL_EVENTS, ASSETS, USAGE,
    CREDIT,
)  # fmt: skip
