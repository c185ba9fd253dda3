"""Fills the fair queue by set-based SQL: as many waiting jobs as wanted, of one model, of as many customers.

For programs that stand on Django already. Rows are copies of one job that was admitted as any other, so they
have all that a row has; counts and watermarks are set to what admission would have left."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db import connection

from billing.models import ApiKey, Customer
from catalog.models import PublicModel, Supply
from catalog.revision import bump_revision
from dispatch import queue
from dispatch.models import Attempt, Job
from tests.factories import (
    ApiKeyFactory,
    AttemptFactory,
    CapacityLeaseFactory,
    ChannelFactory,
    CustomerFactory,
    JobFactory,
    ProviderJobFactory,
    PublicModelFactory,
    SupplyBindingFactory,
    SupplyFactory,
)

NEVER = datetime(2100, 1, 1, tzinfo=UTC)

_OWN = {
    "id": None,
    "public_id": "'job_' || lpad(to_hex(nextval('bench_jobs')), 26, '0')",
    "customer_id": "%(customer)s",
    "api_key_id": "%(key)s",
    "line_id": "%(line)s",
    "created_at": "%(since)s::timestamptz + number * interval '1 millisecond'",
    "queue_at": "%(since)s::timestamptz + number * interval '1 millisecond'",
}

_COPIES = """
INSERT INTO dispatch_job ({}) SELECT {} FROM dispatch_job, generate_series(1, %(jobs)s) AS number
WHERE dispatch_job.id = %(template)s"""


def serving_model(slots: Sequence[int]) -> PublicModel:
    """A published model on a supply with a channel of its own for each number of slots."""
    model = PublicModelFactory()
    for each in slots:
        channel = ChannelFactory(concurrency=each)
        SupplyBindingFactory(public_model=model, supply=SupplyFactory(channel=channel, concurrency=each))
    bump_revision()
    return model


def resize(model: PublicModel, slots: int) -> None:
    """Every supply of the model gets so many."""
    supplies = Supply.objects.filter(bindings__public_model=model)
    for supply in supplies:
        type(supply.channel).objects.filter(pk=supply.channel_id).update(concurrency=slots)
    Supply.objects.filter(pk__in=[supply.pk for supply in supplies]).update(concurrency=slots)
    bump_revision()


def tenants(count: int) -> list[ApiKey]:
    """Customers with a key each, and no limit that a benchmark would meet."""
    made = [ApiKeyFactory(customer=CustomerFactory()) for _ in range(count)]
    Customer.objects.update(max_in_flight=10**6, max_queued=10**8)
    return made


def fill_queue(
    key: ApiKey, model: PublicModel, jobs: int, since: datetime, service_class: str = "standard"
) -> None:
    """So many waiting jobs of the key's customer, a millisecond apart, good for a day."""
    template = admit(key, model, since, service_class)
    with connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE IF NOT EXISTS bench_jobs")
        columns = [field.column for field in Job._meta.concrete_fields if field.column != "id"]
        values = [_OWN.get(column) or column for column in columns]
        statement = _COPIES.format(", ".join(columns), ", ".join(values))
        cursor.execute(
            statement,
            {
                "customer": key.customer_id,
                "key": key.pk,
                "line": template.line_id,
                "since": since,
                "jobs": jobs - 1,
                "template": template.pk,
            },
        )
        cursor.execute(
            "UPDATE dispatch_line SET waiting = waiting + %s, arrivals = arrivals + %s WHERE id = %s",
            [jobs - 1, jobs - 1, template.line_id],
        )
        cursor.execute(
            "UPDATE dispatch_tenantqueue SET waiting = waiting + %s"
            " WHERE customer_id = %s AND service_class = %s",
            [jobs - 1, key.customer_id, service_class],
        )


def admit(key: ApiKey, model: PublicModel, since: datetime, service_class: str = "standard") -> Job:
    """One job, as the API brings it into the queue; in the caller's transaction."""
    job = JobFactory.build(
        api_key=key,
        customer=key.customer,
        public_model=model,
        service_class=service_class,
        created_at=since,
        dispatch_deadline_at=since + timedelta(days=1),
        next_action_at=None,
    )
    queue.take_place(job, since)
    job.save()
    queue.enter(job)
    return job


def running_attempts(supplies: Sequence[Supply], count: int, next_look_at: datetime) -> list[Attempt]:
    """At their providers, each with its task and its slot, the supplies in turns; no deadline ends them."""
    model, key = PublicModelFactory(), ApiKeyFactory()
    made = []
    for number in range(count):
        attempt: Attempt = AttemptFactory(
            job=JobFactory(api_key=key, public_model=model, state="running", next_action_at=None),
            supply=supplies[number % len(supplies)],
            state="running",
            execution_deadline_at=NEVER,
            next_look_at=next_look_at,
        )
        ProviderJobFactory(attempt=attempt, provider_job_id=f"cgt-one-{attempt.pk}")
        CapacityLeaseFactory(attempt=attempt, expires_at=NEVER)
        made.append(attempt)
    return made


def settle_statistics() -> None:
    """As after a while of service: pages clean, statistics known."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) dispatch_job")
        cursor.execute("VACUUM (ANALYZE) dispatch_line")
