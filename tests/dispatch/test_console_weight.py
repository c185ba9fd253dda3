"""What a visit to the console weighs on its way, and what its pages may never count."""

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.console import SignIn
from tests.every_page import make_every_page
from tests.factories import JobFactory

STATIC = Path(settings.BASE_DIR) / "static"
KB = 1_000
BIG = (
    *("dispatch_job", "dispatch_attempt", "dispatch_selectionround", "dispatch_providerevent"),
    *("billing_creditentry", "billing_providerusageentry", "health_healthevent", "catalog_auditentry"),
)
# What keeps a count from reading all there is: a cap, or a span of time.
BOUNDED = re.compile(r"\bLIMIT\b|\b(?:created_at|finished_at|at|hour)\"? >=? ", re.IGNORECASE)


@pytest.fixture
def admin(sign_in: SignIn) -> Client:
    return sign_in("admin")


def packed(*paths: Path) -> int:
    return sum(len(gzip.compress(path.read_bytes())) for path in paths)


def test_p2_scripts_and_styles_of_a_first_visit_are_light() -> None:
    scripts = [*(STATIC / "js").glob("*.js"), *(STATIC / "vendor").glob("*.js")]
    assert packed(*scripts) < 30 * KB
    assert packed(*(STATIC / "css").glob("*.css")) < 15 * KB


def test_p2_a_beat_of_a_full_list_weighs_less_than_10_kb(admin: Client) -> None:
    ids = ",".join(JobFactory().public_id for _ in range(50))
    headers = {"HX-Request": "true", "Console-Rows": ids, "Accept-Encoding": "gzip"}
    response = admin.get("/console/jobs/", headers=headers)
    assert response.headers["Content-Encoding"] == "gzip"
    assert len(response.content) < 10 * KB
    assert gzip.decompress(response.content).count(b"data-row") == 50


def _counts(query: str) -> bool:
    """Whether a query counts rows of something that only grows, without an end."""
    told = query.lower()
    return "count(" in told and any(table in told for table in BIG) and not BOUNDED.search(query)


def test_p3_no_page_and_no_beat_counts_what_only_grows(admin: Client) -> None:
    world, counted = make_every_page(), {}
    for path in world.pages():
        for headers in ({}, {"HX-Request": "true"}):
            with CaptureQueriesContext(connection) as asked:
                assert admin.get(path, headers=headers).status_code in (200, 302, 404, 422), path
            if found := [each["sql"][:300] for each in asked if _counts(each["sql"])]:
                counted[path] = found
    assert counted == {}
