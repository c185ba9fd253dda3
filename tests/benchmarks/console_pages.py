"""What the benchmark of the console asks for: every page, every filter of the lists, and every live beat.

For programs that stand on Django already."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from typing import Final

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from catalog.models import PublicModel
from dispatch.lifecycle import JobState
from dispatch.models import Job
from health.circuit import Cause, State
from health.models import HealthEvent
from tests.every_page import EveryPage
from tests.money_world import MoneyWorld

PLAIN_LISTS: Final = (
    *("audit", "refusals", "degraded", "health/events", "customers", "alerts", "uncertain", "capacity"),
    *("channels", "supplies", "models", "health"),
)
_PUBLIC_ID: Final = re.compile(r"\b([a-z]{3})_[0-9a-z]{8,}")  # which each installation has of its own
_LIVE: Final = re.compile(r"<[a-z]+\b[^>]*\bdata-live=[^>]*>")
_GET: Final = re.compile(r'\bhx-get="([^"]*)"')
_ID: Final = re.compile(r'\bid="([^"]*)"')
_ROW: Final = re.compile(r'\bdata-row="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Request:
    """`kind`: page, list, job, overview or beat. `rows` are those on the screen of a beat's list."""

    name: str
    path: str
    kind: str = "page"
    rows: str = ""
    referrer: str = ""

    def headers(self, tag: str = "") -> dict[str, str]:
        if self.kind != "beat":
            return {}
        told = {"HX-Request": "true", "HX-Current-URL": f"http://localhost{self.referrer}"}
        told |= {"Console-Rows": self.rows} if self.rows else {}
        return told | ({"HX-PTag": tag} if tag else {})


def requests_of(world: EveryPage, client: Client) -> list[Request]:
    """All that answers 200, the beats as the pages themselves name them."""
    pages, beats = [], dict[str, Request]()
    for page in _pages(world):
        response = client.get(page.path)
        if response.status_code != 200:  # a form with a mistake in it, a job that is not there
            continue
        pages.append(page)
        for beat in beats_of(page, response.content.decode()):
            beats.setdefault(beat.name, beat)
    found = [replace(each, name=_PUBLIC_ID.sub(r"\1_…", each.name)) for each in (*pages, *beats.values())]
    return list({each.name: each for each in reversed(found)}.values())[::-1]  # the first of a name


def _pages(world: EveryPage) -> Iterator[Request]:
    yield Request("overview", "/console/", "overview")
    yield from (Request(*each, "list") for each in _lists(world.money))
    yield from (Request(name, f"/console/jobs/{job}/", "job") for name, job in _jobs())
    done = Job.objects.filter(attempts__number=2, state="succeeded").latest("pk")
    yield Request("round 2", f"/console/jobs/{done.public_id}/rounds/2/")
    yield Request("search for a job", f"/console/search/?q={done.public_id[:12]}")
    told = {f"/console/{name}/" for name in ("", "jobs", "ledger", *PLAIN_LISTS)} | {"/console/"}
    for path in world.pages():
        if path not in told:
            told.add(path)
            yield Request(path.removeprefix("/console/").partition("?")[0] + _asked(path), path)


def _asked(path: str) -> str:
    query = path.partition("?")[2]
    return f"?{query[:24]}" if query else ""


def _jobs() -> Iterator[tuple[str, str]]:
    """The newest of each kind that takes its own way through the page."""
    jobs = Job.objects.order_by("-id")
    for name, found in (
        ("a delivered job", jobs.filter(state=JobState.SUCCEEDED)),
        ("a switched job", jobs.filter(attempts__number=2)),
        ("a waiting job", jobs.filter(state=JobState.QUEUED, rounds=None)),
        ("a running job", jobs.filter(state=JobState.RUNNING)),
    ):
        if job := found.first():
            yield name, job.public_id


def _lists(money: MoneyWorld) -> Iterator[tuple[str, str]]:
    customer = Customer.objects.filter(name__startswith="Past").order_by("pk").first() or money.customer
    rare = Customer.objects.order_by("-pk").values_list("public_id", flat=True)[0]
    model = PublicModel.objects.order_by("pk").values_list("slug", flat=True)[0]
    for query in (
        "",
        *(f"state={state}" for state in JobState),
        "state=failed&state=expired&state=cancelled",
        f"model={model}",
        "modality=image",
        f"customer={customer.public_id}",
        f"customer={rare}",
        f"model={model}&state=succeeded",
        f"customer={customer.public_id}&state=failed",
        f"model={model}&state=failed&customer={customer.public_id}",
        f"supply={money.supply.slug}",
        "since=1h",
        "since=24h",
        "had=switch",
        "had=dropped",
        "had=uncertain",
        f"excluded={money.supply.slug}",
        "size=200",
        f"older={_deep()}",
        f"newer={_deep()}",
        f"state=failed&older={_deep()}",
    ):
        yield f"jobs {query}"[:44], f"/console/jobs/?{query}"
    yield from _books(money, customer.public_id)
    yield from _others(money)


def _deep() -> str:
    """A job in the middle of all."""
    least, most = (Job.objects.order_by(way).values_list("pk", flat=True)[0] for way in ("pk", "-pk"))
    return (
        Job.objects.filter(pk__gte=(least + most) // 2).order_by("pk").values_list("public_id", flat=True)[0]
    )


def _books(money: MoneyWorld, customer: str) -> Iterator[tuple[str, str]]:
    days = f"from={timezone.now().date().replace(day=1)}"
    job = money.degraded.public_id
    for query in (
        "",
        *(f"kind={kind}" for kind in CreditEntry.Kind.values),
        f"customer={customer}",
        f"job={job}",
        days,
        "book=providers",
        *(f"book=providers&kind={kind}" for kind in ProviderUsageEntry.Kind.values),
        f"book=providers&supply={money.supply.slug}",
        f"book=providers&job={job}",
        f"book=providers&customer={customer}",
        f"book=providers&{days}",
    ):
        yield f"ledger {query}"[:44], f"/console/ledger/?{query}"
    for query in ("", "book=providers", days, f"book=providers&{days}", f"customer={customer}"):
        yield f"ledger totals {query}"[:44], f"/console/ledger/totals/?{query}"


def _others(money: MoneyWorld) -> Iterator[tuple[str, str]]:
    day = timezone.now().date()
    told = {
        "audit": ["", "actor=wang.l", "action=publish+model", "subject=model", f"from={day.replace(day=1)}"],
        "refusals": [
            "",
            "state=cooldown",
            "state=frozen",
            "state=ended",
            f"provider={money.cooling.provider}",
        ],
        "degraded": [
            "",
            "input=reference_videos",
            f"supply={money.supply.slug}",
            f"from={day.replace(day=1)}",
        ],
        "health/events": [
            "",
            "channel=kestrel-main",
            *(f"to={state.value}" for state in State),
            f"cause={next(iter(Cause)).value}",
            "by=person",
            "by=rule",
            f"older={HealthEvent.objects.order_by('pk')[HealthEvent.objects.count() // 2].public_id}",
        ],
        "customers": ["", "name=Past", "inactive=1"],
        **{name: [""] for name in PLAIN_LISTS[5:]},
    }
    for name, queries in told.items():
        yield from ((f"{name} {query}"[:44], f"/console/{name}/?{query}") for query in queries)


def beats_of(page: Request, html: str) -> Iterator[Request]:
    rows = ",".join(unescape(each) for each in _ROW.findall(html))
    for tag in _LIVE.findall(html):
        path, region = _GET.search(tag), _ID.search(tag)
        if path:
            at = unescape(path[1]) or page.path
            name = at.removeprefix("/console/").partition("?")[0] or "overview"
            if name.startswith("jobs/job_"):
                name = page.name
            yield Request(f"beat {name} {region[1] if region else ''}"[:44], at, "beat", rows, page.path)


def signed_in() -> Client:
    client = Client(SERVER_NAME="localhost")
    user = User.objects.create_superuser("bench")
    client.force_login(user)
    return client
