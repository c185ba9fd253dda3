"""Submits a job through the whole web stack of this process, as a web server calls it, without a network."""

import json
import os
from collections.abc import Callable
from io import BytesIO
from itertools import count
from typing import Any
from wsgiref.util import setup_testing_defaults

import django

django.setup()

from django.db import connection  # noqa: E402 - Django stands only now
from django.utils.timezone import now  # noqa: E402

from billing.models import Customer  # noqa: E402
from billing.services.create_customer import create_customer  # noqa: E402
from billing.services.issue_key import issue_key  # noqa: E402
from catalog.audit import Actor  # noqa: E402
from config.wsgi import application  # noqa: E402
from dispatch.services.import_catalogue import apply_import, plan_import  # noqa: E402
from tests.benchmarks.serving import serve  # noqa: E402
from tests.engine import DEMO_CATALOGUE, VIDEO  # noqa: E402

NOWHERE = {
    "FRAMEYARD_SIMULATOR_URL": "http://127.0.0.1:9",
    "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "nobody asks",
    "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "nobody asks either",
}


def request_of_a_customer() -> dict[str, Any]:
    """What a web server makes of a POST, but for its body and its key."""
    plan = plan_import(DEMO_CATALOGUE.read_text(), NOWHERE, now())
    apply_import(plan, actor=Actor("bench", "command"), now=now())
    customer = create_customer("acme", now(), group="studio", deposit_micros=10**15)
    Customer.objects.filter(pk=customer.pk).update(max_queued=10**7)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/api/v1/jobs/",
        "HTTP_HOST": "localhost",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "HTTP_AUTHORIZATION": f"Bearer {issue_key(customer)[1].secret}",
    }
    setup_testing_defaults(environ)
    return environ


def commits() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def main() -> None:
    environ, numbers = request_of_a_customer(), count()

    def submit() -> None:
        number, said = next(numbers), list[str]()

        def start(status: str, *_: Any) -> Callable[[bytes], object]:
            said.append(status)
            return BytesIO().write

        body = json.dumps({**VIDEO, "prompt": f"scene {number}"}).encode()
        key = f"order-{os.getpid()}-{number}"
        own = {"CONTENT_LENGTH": str(len(body)), "HTTP_IDEMPOTENCY_KEY": key, "wsgi.input": BytesIO(body)}
        response = application({**environ, **own}, start)
        answer = b"".join(response)
        response.close()
        assert said == ["201 Created"], answer

    submit()
    before = commits()
    for _ in range(10):
        submit()
    each = (commits() - before - 2) / 10  # the two questions of `commits` are transactions too
    serve(submit, commits=f"{each:g} commits a submission (first bar 1, goal 1)")


if __name__ == "__main__":
    main()
