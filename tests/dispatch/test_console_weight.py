"""What a visit to the console weighs on its way, and what its pages may never count."""

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.benchmarks.console_pages import Request, beats_of
from tests.console import SignIn
from tests.every_page import make_every_page
from tests.factories import JobFactory

STATIC = Path(settings.BASE_DIR) / "static"
KB = 1_000
BIG = (
    *("dispatch_job", "dispatch_attempt", "dispatch_selectionround", "dispatch_providerevent"),
    *("billing_creditentry", "billing_providerusageentry", "health_healthevent", "catalog_auditentry"),
)
COUNTED = re.compile(rf'\bcount\(.* FROM "?(?:{"|".join(BIG)})\b', re.IGNORECASE | re.DOTALL)
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
    return bool(COUNTED.search(query)) and not BOUNDED.search(query)


def test_p3_no_page_and_no_beat_counts_what_only_grows(admin: Client) -> None:
    counted: dict[str, list[str]] = {}

    def ask(request: Request) -> str:
        with CaptureQueriesContext(connection) as asked:
            response = admin.get(request.path, headers=request.headers())
        assert response.status_code in (200, 302, 404, 422), request.path
        if found := [each["sql"][:300] for each in asked if _counts(each["sql"])]:
            counted[request.path] = found
        return response.content.decode()

    beats: dict[str, Request] = {}
    for path in make_every_page().pages():
        page = Request(path, path)
        beats |= {each.path: each for each in beats_of(page, ask(page))}
    assert len(beats) > 10
    for beat in beats.values():
        ask(beat)
    assert counted == {}
