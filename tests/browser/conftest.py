"""A real Chromium against the live server, skipped in plain sight where there is none.

Playwright keeps an event loop in the thread; Django must be told that its ORM may be used beside it."""

import importlib.util
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from catalog.models import Supply
from dispatch.models import Job
from health.models import Alert
from tests.console import plain_static_files
from tests.every_page import EveryPage, make_every_page
from tests.factories import (
    AlertFactory,
    AttemptFactory,
    ChannelFactory,
    ChannelHealthFactory,
    JobFactory,
    SelectionRoundFactory,
    SupplyFactory,
    UserFactory,
    succeeded_job,
)
from tests.models_world import ModelsWorld, make_models_world
from tests.snapshots import recorded
from tests.switched_job import switched_job

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

__all__ = ["plain_static_files"]

# The same browsers that `./run test` looks for before it installs Playwright.
PLACES = (
    os.environ.get("CHROMIUM", ""),
    *("chromium", "chromium-browser", "google-chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
CHROMIUM = next(filter(None, map(shutil.which, PLACES)), "")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
EVERYWHERE = "everywhere"
# Only bounds a failure: a page that comes is not waited for any longer.
PATIENCE_MS = 60_000
_DEAF = "[data-live][hx-get]:not([data-htmx-powered])"
HEIGHTS = {320: 640, 390: 844, 768: 1024}


def _missing() -> str:
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed (requirements-browser.lock)"
    return "" if CHROMIUM else "there is no Chromium"


class _Skipped(pytest.Module):
    """A file of tests that can't run here: named as skipped, never silently left out."""

    def collect(self) -> NoReturn:
        pytest.skip(f"browser tests: {_missing()}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return _Skipped.from_parent(parent, path=module_path) if _missing() else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What looks at every page in every dress runs only where it is asked for: `-m everywhere`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
    if EVERYWHERE in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker(EVERYWHERE)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@dataclass
class Visitor:
    """A signed-in person at a browser, with what the browser complained about."""

    page: "Page"
    server: str
    complaints: list[str] = field(default_factory=list)

    def visit(self, path: str) -> "Page":
        self.page.goto(self.server + path)
        return self.page

    def beat(self, seconds: int = 10) -> None:
        """One beat of the clock, without waiting for its answers; a region that does not listen yet is."""
        from playwright.sync_api import expect

        expect(self.page.locator(_DEAF)).to_have_count(0)
        self.page.evaluate(f"document.body.dispatchEvent(new CustomEvent('live-{seconds}s'))")

    def beat_and_wait(self, path: str, seconds: int = 10) -> None:
        """One beat, until the region at `path` has its answer in place."""
        from playwright.sync_api import expect

        with self.page.expect_response(lambda response: path in response.url):
            self.beat(seconds)
        expect(self.page.locator(".htmx-request")).to_have_count(0)
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


type Visit = Callable[..., Visitor]


@pytest.fixture
def visitor(
    browser: "Browser", transactional_db: None, plain_static_files: None, live_server: LiveServer
) -> Iterator[Visit]:
    """`visitor("operator", width=390, theme="dark", language="zh-hans", script=False)`."""
    contexts: list[BrowserContext] = []

    def arrive(
        role: str = "operator",
        *,
        width: int = 1440,
        height: int = 0,
        theme: str = "light",
        language: str = "en",
        script: bool = True,
        name: str = "li.m",
    ) -> Visitor:
        context = browser.new_context(
            viewport={"width": width, "height": height or HEIGHTS.get(width, 900)},
            java_script_enabled=script,
            reduced_motion="reduce",  # or colours are measured in the middle of a change
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        cookies = {"theme": theme, "django_language": language, "sessionid": _session(role, name)}
        context.add_cookies(
            [{"name": key, "value": value, "url": live_server.url} for key, value in cookies.items()]
        )
        return _watched(Visitor(context.new_page(), live_server.url))

    yield arrive
    for context in contexts:
        context.close()
    _await_answers()


def _await_answers() -> None:
    """Until the server has ended what was asked: its rows are about to be taken away."""
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(60)


def _session(role: str, name: str) -> str:
    client = Client()
    client.force_login(UserFactory(username=name, roles=[role]))
    return client.cookies["sessionid"].value


def _watched(visitor: Visitor) -> Visitor:
    def complain(message: object) -> None:
        visitor.complaints.append(str(message))

    visitor.page.on("pageerror", complain)
    visitor.page.on("console", lambda message: complain(message.text) if message.type == "error" else None)
    return visitor


@dataclass
class World:
    """What the browser looks at."""

    succeeded: Job
    switched: Job
    running: Job
    alert: Alert
    owned: Alert
    models: ModelsWorld

    def pages(self) -> list[str]:
        return [
            "/console/",
            "/console/jobs/",
            "/console/jobs/?state=failed&modality=image",
            f"/console/jobs/{self.switched.public_id}/",
            f"/console/jobs/{self.running.public_id}/",
            f"/console/jobs/{self.switched.public_id}/rounds/2/",
            "/console/alerts/",
            f"/console/alerts/{self.alert.public_id}/",
            f"/console/alerts/{self.owned.public_id}/",
            "/console/search/?q=nothing-has-this-id",
            *self.models.pages(),
        ]


@pytest.fixture
def every_page(transactional_db: None) -> EveryPage:
    return make_every_page()


@pytest.fixture
def models_world(transactional_db: None) -> ModelsWorld:
    return make_models_world()


@pytest.fixture
def world(models_world: ModelsWorld) -> World:
    now = timezone.now()
    ago = now - timedelta(minutes=5)
    kestrel = Supply.objects.get(slug="kestrel-hd")
    lite = SupplyFactory(slug="kestrel-lite", channel=kestrel.channel)
    ChannelHealthFactory(channel=ChannelFactory(slug="heron-a"), state="circuit_open", changed_at=ago)
    ChannelHealthFactory(channel=ChannelFactory(slug="osprey-2"), state="recovering", changed_at=ago)
    running = JobFactory(state="running", created_at=ago)
    AttemptFactory(
        job=running,
        supply=kestrel,
        selection_round=SelectionRoundFactory(job=running, snapshot=recorded()),
        state="submission_uncertain",
        request_started_at=ago + timedelta(seconds=3),
    )
    return World(
        succeeded=succeeded_job(supply=kestrel, created_at=ago - timedelta(minutes=5)),
        switched=switched_job(kestrel, lite, ago),
        running=running,
        alert=AlertFactory(opened_at=ago, details={"job": running.public_id}),
        owned=AlertFactory(
            code="exact_unavailable", severity="warning", acknowledged=True, opened_at=ago, count=3
        ),
        models=models_world,
    )
