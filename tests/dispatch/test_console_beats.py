"""A beat in which nothing changed is answered without drawing; and no change is taken for none."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from billing.models import Customer
from catalog.audit import Change, record
from catalog.models import CapacityGroup, Channel, PublicModel, Supply, SupplyBinding
from dispatch.models import Attempt, Bell, CapacityLease, HourOfWork, Job, Maintenance, WorkingCopy
from dispatch.templatetags.console import span
from dispatch.views import beats
from dispatch.views.beats import Tag
from dispatch.views.clock import Clock, as_it_reads, reads_the_same_for
from dispatch.views.shell import answer_beat
from health.models import Alert, RefusalRecord, SupplyHealth
from tests.benchmarks.console_pages import Request, beats_of
from tests.console import SignIn
from tests.every_page import make_every_page
from tests.factories import PublicModelFactory, UserFactory
from tests.operations_world import WANG

NOW = datetime(2026, 11, 30, 12, 0, 20, tzinfo=UTC)
SIGNED = {"publication"}  # its form is signed anew each time
BEAT = {"HX-Request": "true"}
_MASKED = re.compile(r'csrfmiddlewaretoken" value="[^"]*"')


def more(field: str) -> dict[str, object]:
    return {field: F(field) + 1}


def longer(field: str) -> dict[str, object]:
    return {field: Concat(F(field), Value("x"))}


# Each kind of thing that a page shows, and what becomes of it.
CHANGES: Mapping[str, Callable[[], object]] = {
    "jobs end": lambda: Job.objects.filter(state="running").update(
        state="failed", finished_at=timezone.now()
    ),
    "jobs cost more": lambda: Job.objects.update(provider_cost_micros=7_654_321),
    "customers have other names": lambda: Customer.objects.update(**longer("name")),
    "a channel is switched off": lambda: Channel.objects.filter(slug="kestrel-main").update(state="disabled"),
    "groups have more slots": lambda: CapacityGroup.objects.update(**more("capacity")),
    "supplies have more slots": lambda: Supply.objects.update(**more("concurrency")),
    "priorities are higher": lambda: SupplyBinding.objects.update(**more("priority")),
    "models are not published": lambda: PublicModel.objects.update(published=False),
    "supplies do better": lambda: SupplyHealth.objects.filter(state="degraded").update(state="healthy"),
    "slots are not known": lambda: CapacityLease.objects.filter(released_at=None).update(state="unknown"),
    "attempts are generated": lambda: Attempt.objects.update(generated_at=timezone.now()),
    "maintenances have other reasons": lambda: Maintenance.objects.update(**longer("reason")),
    "alerts are acknowledged": lambda: Alert.objects.update(
        acknowledged_at=timezone.now(), acknowledged_by="wang.l"
    ),
    "refusals end": lambda: RefusalRecord.objects.update(ended_at=timezone.now(), ended_why="mended"),
    "somebody changed a limit": lambda: record(
        WANG, Change("change limit", "channel:kestrel-main"), timezone.now()
    ),
    "the dispatcher looked": lambda: Bell.objects.update(rung_at=timezone.now(), answered_at=timezone.now()),
    "hours are counted": lambda: HourOfWork.objects.update(**more("samples")),
}


@dataclass(frozen=True)
class Regions:
    client: Client
    requests: Sequence[Request]

    def ask(self, region: Request, tag: str = "") -> HttpResponse:
        return self.client.get(region.path, headers=region.headers(tag))  # type: ignore[return-value]

    def answers(self) -> dict[Request, HttpResponse]:
        return {each: self.ask(each) for each in self.requests}


def _kind(region: Request) -> str:
    """The name of its view: one page of each kind is enough."""
    return str(resolve(region.path.partition("?")[0]).url_name)


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


@pytest.fixture
def regions(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Regions:
    """Every live region of a made-up installation, two hours on: then ages read as hours."""
    admin = sign_in("admin")
    found: dict[str, Request] = {}
    for path in make_every_page().pages():
        page = admin.get(path)
        if page.status_code == 200:
            live = beats_of(Request(path, path), page.content.decode())
            found |= {_kind(each): each for each in live}
    # A tag has whole seconds. What was made just now would become two hours old within the next one.
    later = (timezone.now() + timedelta(hours=2, seconds=30)).replace(microsecond=0)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    return Regions(admin, [each for kind, each in found.items() if kind not in SIGNED])


def was_drawn(response: HttpResponse) -> bool:
    return bool(response.templates)  # type: ignore[attr-defined]


def looks(response: HttpResponse) -> str:
    return _MASKED.sub("", response.content.decode())


def test_p1_l12_every_live_region_that_did_not_change_is_answered_without_drawing(regions: Regions) -> None:
    assert len(regions.requests) >= 20
    for region, first in regions.answers().items():
        again = regions.ask(region, first["HX-PTag"])
        assert was_drawn(first), region.path
        assert (again.status_code, again["HX-PTag"]) == (304, first["HX-PTag"]), region.path
        assert not was_drawn(again), region.path


def test_p1_some_seconds_later_only_what_looks_otherwise_is_drawn(
    regions: Regions, monkeypatch: pytest.MonkeyPatch
) -> None:
    HourOfWork.objects.update(counted_at=timezone.now())  # while the count is late, it is due at any moment
    before, then = regions.answers(), timezone.now() + timedelta(seconds=5)
    monkeypatch.setattr("django.utils.timezone.now", lambda: then)
    for region, first in before.items():
        again = regions.ask(region, first["HX-PTag"])
        assert (again.status_code == 200) == was_drawn(again), region.path


def test_no_change_of_anything_that_is_shown_passes_for_none(regions: Regions) -> None:
    """After each change, what was not drawn again would have looked as before."""
    before, idle = regions.answers(), list[str]()
    for change, make in CHANGES.items():
        changed = 0
        with transaction.atomic():
            make()
            for region, first in before.items():
                answer = regions.ask(region, first["HX-PTag"])
                changed += answer.status_code == 200
                if not was_drawn(answer):
                    assert looks(regions.ask(region)) == looks(first), (change, region.path)
            transaction.set_rollback(True)
        idle += [] if changed else [change]
    assert idle == []


def test_a_beat_of_a_model_asks_for_nothing_that_its_region_does_not_show(viewer: Client) -> None:
    model = PublicModelFactory(published=True)
    with CaptureQueriesContext(connection) as asked:
        assert viewer.get(f"/console/models/{model.slug}/", headers=BEAT).status_code == 200
    told = " ".join(each["sql"] for each in asked)
    assert "catalog_supplybinding" in told
    for table in ("dispatch_publicationwatch", "dispatch_workingcopy", "catalog_auditentry"):
        assert table not in told


def drawn(context: Mapping[str, object], tag: str = "", at: datetime = NOW) -> HttpResponse:
    """By a template that shows its `number`."""
    request: HttpRequest = RequestFactory().get("/console/", headers={"HX-PTag": tag})
    request.user = AnonymousUser()
    return answer_beat(request, "console/nav_number.html", context, at)


@pytest.mark.django_db
def test_what_asks_the_database_while_it_is_drawn_is_drawn_each_time() -> None:
    copy = WorkingCopy(public_model=PublicModelFactory(slug="vid"), user=UserFactory(username="li.m"))
    copy.base_revision, copy.begun_at, copy.changed_at = 1, NOW, NOW
    copy.save()
    lazily = WorkingCopy.objects.get()  # its text names its model and its person, which it has to fetch
    first = drawn({"number": lazily})
    assert b"vid by li.m" in first.content
    PublicModel.objects.update(slug="img")
    second = drawn({"number": WorkingCopy.objects.get()}, first["HX-PTag"])
    assert b"img by li.m" in second.content
    assert drawn({"number": WorkingCopy.objects.get()}, second["HX-PTag"]).status_code == 304


def test_what_cant_be_written_down_is_drawn_each_time(db: None) -> None:
    number = iter([1, 2, 3])
    first = drawn({"number": lambda: next(number)})
    assert beats.told(lambda: 1) == ""
    assert Tag.read(first["HX-PTag"]).told == ""
    assert drawn({"number": lambda: 3}, first["HX-PTag"]).status_code == 200


def test_who_asks_and_in_which_language_is_part_of_what_is_drawn(viewer: Client, sign_in: SignIn) -> None:
    def tag(client: Client, **more: str) -> str:
        return str(client.get("/console/", headers=BEAT | more)["HX-PTag"])

    mine = tag(viewer)
    assert tag(viewer) == mine
    assert tag(sign_in("operator", username="wang.l")) != mine
    viewer.post("/console/language/", {"language": "zh-hans", "next": "/console/"})
    assert tag(viewer) != mine


@given(seconds=st.floats(0, 400_000), part=st.floats(0, 0.999))
def test_an_age_reads_the_same_as_long_as_is_said_and_no_longer(seconds: float, part: float) -> None:
    holds = reads_the_same_for(seconds)
    assert span(seconds) == span(seconds + holds * part)
    assert not holds or span(seconds) != span(seconds + holds + 0.01)
    assert holds > 0 or seconds < 3_600


@given(seconds=st.floats(0, 400_000))
def test_a_duration_of_a_list_changes_only_with_its_text(seconds: float) -> None:
    least = as_it_reads(seconds)
    assert span(least) == span(seconds)
    assert as_it_reads(seconds + reads_the_same_for(seconds) * 0.99) == least


def test_a_tag_with_ages_vouches_only_while_they_read_so() -> None:
    clock = Clock(NOW)
    clock.age(NOW - timedelta(hours=3, minutes=5, seconds=50))
    clock.age(NOW - timedelta(days=2))
    tag = Tag.read(str(Tag.of("looks", "told", clock)))
    assert tag.vouches("told", NOW)
    assert tag.vouches("told", NOW + timedelta(seconds=8))
    assert not tag.vouches("told", NOW + timedelta(seconds=10))
    assert not tag.vouches("told", NOW - timedelta(seconds=1))  # of a clock that was put back
    assert not tag.vouches("other", NOW)


@pytest.mark.parametrize("text", ["", "-", "a.b.c.d.e", "...", f"x.y.1.{'9' * 5000}", "x.y.٣.٤"])
def test_a_foreign_tag_vouches_for_nothing(text: str) -> None:
    assert not Tag.read(text).vouches("told", NOW)
