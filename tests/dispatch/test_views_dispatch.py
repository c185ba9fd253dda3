"""Dispatch: why nothing is moving. Tests name their item of the console's checklist."""

import re
from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dispatch.models import Job
from dispatch.routing.reasons import REASONS
from tests.console import SignIn
from tests.operations_world import OperationsWorld, beat, make_operations_world, waits

PAGE = "/console/dispatch/"


@pytest.fixture
def world(db: None) -> OperationsWorld:
    return make_operations_world()


def text_of(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def counts(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'data-jobs="(\d+)"', page)]


def test_r9_the_counts_of_the_page_add_up_to_what_waits_in_twenty_random_states(
    sign_in: SignIn, world: OperationsWorld
) -> None:
    client, chance, now = sign_in("viewer"), Random(70), timezone.now()
    for _ in range(20):
        Job.objects.filter(state="queued").update(state="cancelled", finished_at=now, next_action_at=None)
        for reason in chance.sample(sorted(REASONS), 3):
            waits(world.model, reason, chance.randint(0, 2), now - timedelta(seconds=chance.randint(0, 900)))
        page = text_of(client)
        waiting = Job.objects.filter(state="queued").count()
        total = re.search(r'id="reasons-total">(\d+)<', page)
        assert sum(counts(page)) == (int(total.group(1)) if total else 0) == waiting
        assert total or "Nothing is waiting" in page


def test_r9_with_the_heartbeat_stopped_the_verdict_names_the_dispatcher_first(
    sign_in: SignIn, world: OperationsWorld
) -> None:
    beat(timezone.now() - timedelta(seconds=90))
    response = sign_in("viewer").get(PAGE)
    assert response.context["verdict"].startswith("Nothing moves because no dispatcher scans. Waiting: 6.")
    page = response.content.decode()
    assert re.search(r'data-check="dispatcher" data-passed="no"', page)
    assert "what is counted below is what it saw last" in page


def test_each_reason_names_who_holds_it_up_and_links_to_where_it_is_mended(
    sign_in: SignIn, world: OperationsWorld
) -> None:
    client = sign_in("viewer")
    page = text_of(client)
    assert "heron-main: Circuit open" in " ".join(page.split())
    assert "wang.l" in page, "C4: the maintenance stands here too"
    assert "key rotation" in page
    addresses = dict(re.findall(r'id="reason-(\w+)-a" href="([^"]+)"', page))
    assert set(addresses) == {"capacity_full", "unhealthy", "not_looked_at"}
    for address in addresses.values():
        text_of(client, address.replace("&amp;", "&"))


def test_the_six_checks_stand_in_their_order_and_nothing_waiting_is_a_result(
    sign_in: SignIn, db: None
) -> None:
    beat(timezone.now())
    page = text_of(sign_in("viewer"))
    checks = re.findall(r'data-check="(\w+)"', page)
    assert checks == ["arriving", "dispatcher", "switches", "published", "capability", "health"]
    assert "Nothing is waiting" in page


def test_without_any_scan_seen_the_dispatcher_is_unknown_and_never_ok(sign_in: SignIn, db: None) -> None:
    page = text_of(sign_in("viewer"))
    assert re.search(r'data-check="dispatcher" data-passed="unknown"', page)
    assert "no scan was ever seen" in page


def test_p1_the_page_costs_the_same_queries_whatever_waits(sign_in: SignIn, world: OperationsWorld) -> None:
    client = sign_in("viewer")
    text_of(client)
    with CaptureQueriesContext(
        connection,
    ) as few:
        text_of(client)
    waits(world.model, "capacity_full", 10, timezone.now())
    with CaptureQueriesContext(connection) as many:
        text_of(client)
    assert len(few) == len(many) <= 30
