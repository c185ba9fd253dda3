"""The audit, a person's settings, who may do what, and the help."""

import csv
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as installation
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from catalog.audit import Actor, Change, record
from catalog.models import AuditEntry
from dispatch.queries.hour import hour_of_steps
from dispatch.queries.search import find
from dispatch.views.audit import address_of
from dispatch.views.help import TERMS
from tests.console import SignIn
from tests.engine import Engine
from tests.factories import ApiKeyFactory, ChannelFactory, CustomerFactory, SupplyFactory, UserFactory
from tests.money_world import MoneyWorld, make_money_world

AUDIT = "/console/audit/"
SETTINGS = "/console/settings/"
HELP = "/console/help/routing/"
VOID = {"br", "hr", "img", "input", "link", "meta"}


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def changed(action: str, subject: str, actor: str = "wang.l") -> AuditEntry:
    change = Change(action, subject, {"slots": 4}, {"slots": 8})
    return record(Actor(actor, "console"), change, timezone.now())


def test_g6_entries_are_filtered_by_who_what_and_of_and_have_permalinks(db: None, viewer: Client) -> None:
    mine = changed("save channel", "channel:chn_1", "li.m")
    other = changed("save supply", "supply:sup_1")
    changed("save supply", "supply:sup_2")

    def shown(query: str) -> list[int]:
        return [entry.pk for entry in viewer.get(f"{AUDIT}?{query}").context["entries"]]

    assert shown("actor=li.m") == [mine.pk]
    assert shown("subject=supply:sup_1") == [other.pk]
    assert len(shown("subject=supply&action=save+supply")) == 2
    text = viewer.get(f"{AUDIT}?actor=nobody&action=save+rule").content.decode()
    assert "No entry matches these 2 filters" in text
    assert "save rule" in text
    page = viewer.get(f"{AUDIT}{other.pk}/").content.decode()
    assert '<td class="said">4</td><td class="said">8</td>' in page
    assert f'href="{AUDIT}?subject=supply%3Asup_1"' in page
    assert viewer.get(f"{AUDIT}999999999/").status_code == 404
    exported = b"".join(viewer.get(f"{AUDIT}export/?actor=li.m")).decode()  # type: ignore[arg-type]
    (row,) = csv.DictReader(StringIO(exported))
    assert (row["entry"], row["action"], row["after"]) == (str(mine.pk), "save channel", '{"slots": 8}')


def test_an_entry_names_its_request_which_finds_all_that_it_changed(sign_in: SignIn) -> None:
    finance, request_id = sign_in("finance"), "from-the-proxy-0001"
    customer = CustomerFactory(currency="USD")
    address = f"/console/customers/{customer.public_id}/deposit/"
    token = finance.get(address, {"amount": "12.5", "note": "invoice 7"}).context["token"]
    sent = {"micros": "12500000", "note": "invoice 7", "confirm": token}
    assert finance.post(f"{address}now/", sent, headers={"X-Request-Id": request_id}).status_code == 302
    entry = AuditEntry.objects.get(action="deposit credit")
    assert entry.request_id == request_id
    page = finance.get(f"{AUDIT}{entry.pk}/").content.decode()
    assert request_id in page
    assert "$12.50" in page
    assert f'href="{AUDIT}?request={request_id}"' in page
    changed("save channel", "channel:chn_1")
    listed = finance.get(f"{AUDIT}?request={request_id}")
    assert [each.pk for each in listed.context["entries"]] == [entry.pk]
    assert "No entry matches this filter" in finance.get(f"{AUDIT}?request=req_of_nobody").content.decode()
    (found,) = find(request_id)
    assert found.url == f"{AUDIT}?request={request_id}"


def test_an_entry_names_its_subject_where_it_is_known_in_as_many_questions(db: None, viewer: Client) -> None:
    def shown() -> tuple[str, int]:
        with CaptureQueriesContext(connection) as queries:
            text = viewer.get(AUDIT).content.decode()
        return text, len(queries)

    supply = SupplyFactory(slug="kestrel-hd")
    changed("save supply", f"supply:{supply.public_id}")
    shown()
    _text, before = shown()
    channel = ChannelFactory(slug="osprey-main")
    entry = changed("save channel", f"channel:{channel.public_id}")
    changed("save supply", "supply:sup_gone")
    text, after = shown()
    assert before == after
    rows = text.split('id="entries"')[1]
    assert "kestrel-hd" in rows
    assert "osprey-main" in rows
    assert "sup_gone" in rows
    assert "<strong>osprey-main</strong>" in viewer.get(f"{AUDIT}{entry.pk}/").content.decode()
    beat = viewer.get(AUDIT, headers={"HX-Request": "true", "Console-Rows": str(entry.pk)}).content.decode()
    assert "osprey-main" in beat


def test_an_entry_leads_to_what_it_is_about(db: None) -> None:
    key = ApiKeyFactory()
    assert address_of(f"api_key:{key.public_id}") == (
        f"/console/customers/{key.customer.public_id}/#{key.public_id}"
    )
    assert address_of("group:grp_1") == address_of("capacity_group:grp_1") == "/console/capacity/"
    assert address_of("health_policy:hpo_1") == SETTINGS
    assert address_of("api_key:key_gone") == address_of("address:/console/") == ""


def test_a_kind_that_old_entries_call_otherwise_is_one_filter(db: None, viewer: Client) -> None:
    old = changed("set group capacity", "group:grp_1")
    new = changed("set group capacity", "capacity_group:grp_1")
    changed("save channel", "channel:chn_1")
    for subject in ("capacity_group", "group", "capacity_group:grp_1", "group:grp_1"):
        page = viewer.get(AUDIT, {"subject": subject})
        assert [entry.pk for entry in page.context["entries"]] == [new.pk, old.pk], subject
        choices = re.findall(r'<option value="([a-z_]+)"( selected)?>Capacity group<', page.content.decode())
        assert choices == [("capacity_group", "" if ":" in subject else " selected")]


def test_l4_new_entries_are_told_and_move_nothing(db: None, viewer: Client) -> None:
    first = changed("save channel", "channel:chn_1")
    changed("save supply", "supply:sup_1")
    changed("save supply", "supply:sup_1")
    text = viewer.get(AUDIT, headers={"HX-Request": "true", "Console-Rows": str(first.pk)}).content.decode()
    assert text.count("data-row=") == 1
    assert "2 new. Show" in text


def test_settings_are_kept_by_the_browser_and_money_keeps_its_own_zone(
    db: None, viewer: Client, settings: Settings
) -> None:
    settings.REPORTING_TIME_ZONE = "Europe/Berlin"
    entry = AuditEntry.objects.create(
        at="2026-07-01T12:00:00Z", actor="li.m", source="console", action="set rate", subject="rate:EUR-USD"
    )
    chosen = {
        "zone": "Asia/Shanghai",
        "density": "compact",
        "theme": "dark",
        "keys": "off",
        "language": "en",
    }
    assert viewer.post(f"{SETTINGS}save/", chosen).status_code == 302
    page = viewer.get(f"{AUDIT}{entry.pk}/").content.decode()
    assert 'datetime="2026-07-01T12:00:00Z">2026-07-01 20:00:00 (UTC+8)<' in page
    assert 'data-theme="dark" data-density="compact" data-keys="off"' in page
    assert "(UTC+8)" not in viewer.get("/console/ledger/").content.decode()  # I7
    viewer.post(f"{SETTINGS}save/", {"zone": "../../etc/passwd", "density": "huge", "language": "xx"})
    assert "(UTC+8)" in viewer.get(AUDIT).content.decode()
    viewer.cookies["zone"] = "../../etc/passwd"
    assert viewer.get(AUDIT).status_code == 200


def test_team_thresholds_are_shown_with_their_names_and_only_to_read(db: None, viewer: Client) -> None:
    text = viewer.get(SETTINGS).content.decode()
    for name in ("FRAMEYARD_ALERT_ERRORS_PERCENT", "FRAMEYARD_REPORTING_TIME_ZONE", "cooldowns_s"):
        assert name in text
    assert 'id="users"' not in text
    assert "settings/users/" not in text


def test_a_change_of_roles_ends_that_persons_sessions_and_never_takes_the_last_admin(
    sign_in: SignIn,
) -> None:
    root = sign_in("admin", username="root")
    wang = sign_in("operator", username="wang.l")
    person = User.objects.get(username="wang.l")
    address = f"{SETTINGS}users/{person.pk}/"
    assert wang.get(AUDIT).status_code == 200
    form = {"confirm": root.get(address).context["token"], "role": ["viewer", "finance"]}
    assert root.post(f"{address}roles/", {"role": ["admin"]}).status_code == 403
    assert root.post(f"{address}roles/", form).status_code == 302
    assert wang.get(AUDIT).status_code == 302  # to the login page
    assert root.get(SETTINGS).status_code == 200
    assert set(person.groups.values_list("name", flat=True)) == {"viewer", "finance"}
    entry = AuditEntry.objects.get(action="change roles")
    assert entry.after == {"roles": ["finance", "viewer"], "sessions_ended": 1}
    own = f"{SETTINGS}users/{User.objects.get(username='root').pk}/"
    last = root.post(f"{own}roles/", {"confirm": root.get(own).context["token"], "role": ["viewer"]})
    assert last.status_code == 409
    assert "nobody could give out roles" in last.content.decode()
    UserFactory(username="second", roles=["admin"])
    root.post(f"{own}roles/", {"confirm": root.get(own).context["token"], "role": ["viewer"]})
    assert root.get(AUDIT).status_code == 302
    assert Session.objects.count() == 0


def test_the_help_counts_what_the_steps_did_this_hour_and_its_sum_adds_up(
    engine: Engine, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: engine.now)
    for _ in range(2):
        engine.finish(engine.job())
    hour = hour_of_steps(engine.now)
    assert (hour.rounds, hour.selected) == (2, 2)
    assert hour.selected + hour.ranked + hour.excluded == hour.candidates > 0
    assert hour.candidates >= hour.left[0] >= hour.left[1] >= hour.selected + hour.ranked
    text = viewer.get(HELP).content.decode()
    assert (
        f"2 selected + {hour.ranked} ranked + {hour.excluded} excluded = {hour.candidates} candidates" in text
    )
    assert "Summed over 2 selection rounds of the last hour." in text
    assert "real person" not in text.lower()  # of images there is no such step


def test_i4_the_glossary_has_each_term_once_in_both_languages(db: None, viewer: Client) -> None:
    told = viewer.get(HELP).context["glossary"]
    assert len(told) == len(TERMS) == len({(kind, english) for english, _zh, kind, _code in told})
    assert all(english.isascii() and not chinese.isascii() for english, chinese, _kind, _code in told)
    by_name = {(kind, english): chinese for english, chinese, kind, _code in told}
    assert by_name["health", "Degraded"] != by_name["tier", "degraded"]
    assert by_name["", "Acknowledge"] == "确认收到"


class Text(HTMLParser):
    """What a page says, but for what is marked as another language and what is quoted code."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[bool] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        for name in ("aria-label", "placeholder", "title"):
            if name in told:
                self.said.append(told[name] or "")
        if tag not in VOID:
            is_foreign = told.get("lang") in ("en", "und") or tag in ("code", "pre", "script", "style")
            self.foreign.append(is_foreign or bool(self.foreign and self.foreign[-1]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self.foreign:
            self.foreign.pop()

    def handle_data(self, data: str) -> None:
        if not (self.foreign and self.foreign[-1]):
            self.said.append(" ".join(data.split()))


def test_i2_no_sentence_of_the_catalogue_is_left_in_english(sign_in: SignIn) -> None:
    world: MoneyWorld = make_money_world()
    root = sign_in("admin", username="root")
    root.post("/console/language/", {"language": "zh-hans"})
    catalogue = Path(installation.BASE_DIR) / "config/locale/zh_Hans/LC_MESSAGES/django.po"
    english = {
        line[7:-1]
        for line in catalogue.read_text().splitlines()
        if line.startswith('msgid "') and " " in line[7:-1] and "%" not in line
    }
    left = {}
    for address in world.pages():
        response = root.get(address)
        assert response.status_code in (200, 422), address
        page = Text()
        page.feed(response.content.decode())
        found = english & set(page.said)
        if found:
            left[address] = found
    assert not left
