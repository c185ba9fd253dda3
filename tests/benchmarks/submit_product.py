"""Submits a job through the whole web stack of this process, without a network."""

import os
from itertools import count

import django

django.setup()

from django.db import connection  # noqa: E402 - Django stands only now
from django.utils.timezone import now  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from billing.models import Customer  # noqa: E402
from billing.services.create_customer import create_customer  # noqa: E402
from billing.services.issue_key import issue_key  # noqa: E402
from catalog.audit import Actor  # noqa: E402
from dispatch.services.import_catalogue import apply_import, plan_import  # noqa: E402
from tests.benchmarks.serving import serve  # noqa: E402
from tests.engine import DEMO_CATALOGUE, VIDEO  # noqa: E402

NOWHERE = {
    "FRAMEYARD_SIMULATOR_URL": "http://127.0.0.1:9",
    "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "nobody asks",
    "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "nobody asks either",
}


def client() -> APIClient:
    plan = plan_import(DEMO_CATALOGUE.read_text(), NOWHERE, now())
    apply_import(plan, actor=Actor("bench", "command"), now=now())
    customer = create_customer("acme", now(), group="studio", deposit_micros=10**15)
    Customer.objects.filter(pk=customer.pk).update(max_queued=10**7)
    client = APIClient(SERVER_NAME="localhost")
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {issue_key(customer)[1].secret}")
    return client


def commits() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def main() -> None:
    caller, numbers = client(), count()

    def submit() -> None:
        number = next(numbers)
        headers = {"Idempotency-Key": f"order-{os.getpid()}-{number}"}
        body = {**VIDEO, "prompt": f"scene {number}"}
        response = caller.post("/api/v1/jobs/", body, format="json", headers=headers)
        assert response.status_code == 201, response.content

    submit()
    before = commits()
    for _ in range(10):
        submit()
    each = (commits() - before - 2) / 10  # the two questions of `commits` are transactions too
    serve(submit, commits=f"{each:g} commits a submission (first bar 1, goal 1)")


if __name__ == "__main__":
    main()
