"""Puts attempts in flight by set-based SQL, as copies of one: ADDRESS of their provider, FEW, MANY.

FEW are there at once; MANY come with the first window, their next looks spread over the next minute."""

import sys

import django

django.setup()

from django.db import connection, models, transaction  # noqa: E402 - Django stands only now
from django.utils.timezone import now  # noqa: E402

from catalog.revision import bump_revision  # noqa: E402
from dispatch.models import Attempt, CapacityLease, Job, ProviderJob, SelectionRound  # noqa: E402
from dispatch.services.recount import recount  # noqa: E402
from tests.benchmarks.seeding import running_attempts  # noqa: E402
from tests.benchmarks.serving import serve_batches  # noqa: E402
from tests.factories import ChannelFactory, SupplyFactory  # noqa: E402

MINUTE_MS = 60_000
FIRST_ID = 1_000_000  # of the copies; below are the few that were made one by one

_NAMED = "%(prefix)s || lpad(to_hex(nth), 26, '0')"
_IDS = f"{FIRST_ID} + nth"
_OWN: dict[type[models.Model], dict[str, str]] = {
    Job: {"public_id": _NAMED % {"prefix": "'job_'"}},
    SelectionRound: {"public_id": _NAMED % {"prefix": "'rnd_'"}, "job_id": _IDS},
    Attempt: {
        "public_id": _NAMED % {"prefix": "'att_'"},
        "client_request_key": _NAMED % {"prefix": "'att_'"},
        "job_id": _IDS,
        "selection_round_id": _IDS,
        "next_look_at": f"now() + nth %% {MINUTE_MS} * interval '1 millisecond'",
    },
    ProviderJob: {"provider_job_id": "'cgt-' || nth", "attempt_id": _IDS},
    CapacityLease: {"token": _NAMED % {"prefix": "'lse_'"}, "attempt_id": _IDS},
}


def copy(template: Attempt, count: int) -> None:
    of: dict[type[models.Model], int] = {
        Job: template.job_id,
        SelectionRound: template.selection_round_id,
        Attempt: template.pk,
        ProviderJob: template.provider_job.pk,
        CapacityLease: template.leases.get().pk,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        for model, own in _OWN.items():
            columns = [field.column for field in model._meta.concrete_fields]
            values = [_IDS if column == "id" else own.get(column, column) for column in columns]
            table = model._meta.db_table
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"  # noqa: S608
                f" FROM {table}, generate_series(1, %s) AS copied(nth) WHERE {table}.id = %s",
                [count, of[model]],
            )
    recount(now())


def main(address: str, few: int, many: int) -> None:
    channel = ChannelFactory(base_url=address, concurrency=10**6)
    template = running_attempts([SupplyFactory(channel=channel, concurrency=10**6)], few, now())[-1]
    bump_revision()

    def crowd() -> int:
        copy(template, many)
        return many

    serve_batches(crowd)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
