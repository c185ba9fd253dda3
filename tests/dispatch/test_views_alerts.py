"""Alerts: three groups, acknowledged once by the first, in the header of every page until then."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from catalog.models import AuditEntry
from dispatch.models import Attempt
from health.deliveries import queue_deliveries
from health.models import Alert, AlertDelivery
from tests.console import SignIn
from tests.factories import AlertFactory, AttemptFactory

BEAT = {"HX-Request": "true"}


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    return sign_in("operator")


def acknowledge(client: Client, alert: Alert, **fields: str) -> str:
    response = client.post(f"/console/alerts/{alert.public_id}/acknowledge/", fields, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_the_groups_ask_for_attention_in_order(operator: Client) -> None:
    now = timezone.now()
    hour = {"opened_at": now - timedelta(hours=1), "last_seen_at": now}
    critical = AlertFactory(**hour)
    warning = AlertFactory(code="exact_unavailable", severity="warning", **hour)
    owned = AlertFactory(acknowledged=True, **hour)
    ended = AlertFactory(acknowledged=True, resolved=True, resolved_at=now, **hour)
    old = AlertFactory(acknowledged=True, resolved=True, resolved_at=now - timedelta(days=2), **hour)
    groups = operator.get("/console/alerts/").context["groups"]
    assert groups.need_a_person == [critical]
    assert groups.firing == [owned, warning]
    assert groups.resolved == [ended]
    assert old not in [*groups.need_a_person, *groups.firing, *groups.resolved]


def test_a3_a_critical_alert_that_ended_by_itself_stays_until_somebody_saw_it(operator: Client) -> None:
    AlertFactory(resolved=True)
    text = operator.get("/console/alerts/").content.decode()
    assert "resolved by itself at" in text
    assert 'id="group-needs"' in text
    assert 'id="group-resolved"' not in text


def test_a1_what_is_critical_stands_in_the_header_of_every_page_until_acknowledged(operator: Client) -> None:
    alert = AlertFactory(code="no_dispatcher", subject="installation")
    for address in ("/console/", "/console/jobs/", "/console/search/?q=x"):
        text = operator.get(address).content.decode()
        assert f'id="strip-{alert.public_id}"' in text
        assert "No dispatcher is running" in text
    acknowledge(operator, alert)
    assert "strip-alr" not in operator.get("/console/jobs/").content.decode()


def test_the_beat_of_the_strips_updates_header_and_navigation_in_one_answer(operator: Client) -> None:
    quiet = operator.get("/console/strips/", headers=BEAT)
    alert = AlertFactory()
    loud = operator.get("/console/strips/", headers=BEAT | {"HX-PTag": quiet["HX-PTag"]})
    text = loud.content.decode()
    assert alert.public_id in text
    for target in ("#alarm-count", "#nav-alerts"):
        assert f'<hx-partial hx-target="{target}"' in text
    again = operator.get("/console/strips/", headers=BEAT | {"HX-PTag": loud["HX-PTag"]})
    assert again.status_code == 304


def test_a2_acknowledging_names_who_and_when_and_writes_one_entry(operator: Client) -> None:
    alert = AlertFactory()
    text = acknowledge(operator, alert, note="on it")
    assert "Acknowledged by li.m at" in text
    assert "on it" in text
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.note, alert.resolved_at) == ("li.m", "on it", None)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject) == ("acknowledge alert", f"alert:{alert.public_id}")


def test_a4_the_second_to_acknowledge_reads_who_was_first(operator: Client, sign_in: SignIn) -> None:
    alert = AlertFactory()
    acknowledge(operator, alert, note="mine")
    text = acknowledge(sign_in("operator", username="wang.l"), alert, note="no, mine")
    assert "Already acknowledged by li.m" in text
    alert.refresh_from_db()
    assert alert.note == "mine"
    assert AuditEntry.objects.count() == 1


def test_a5_acknowledging_what_has_ended_is_recorded_and_it_stays_ended(operator: Client) -> None:
    alert = AlertFactory(resolved=True)
    acknowledge(operator, alert)
    alert.refresh_from_db()
    assert alert.acknowledged_by == "li.m"
    assert alert.resolved_at is not None


def test_after_acknowledging_one_returns_to_the_page_one_was_on_and_nowhere_else(operator: Client) -> None:
    def sent_to(wanted: str) -> str:
        address = f"/console/alerts/{AlertFactory().public_id}/acknowledge/"
        return operator.post(address, {"next": wanted})["Location"]

    assert sent_to("/console/jobs/?state=failed&state=expired") == "/console/jobs/?state=failed&state=expired"
    for elsewhere in ("https://evil.example.com/", "//evil.example.com/", "12:30", "overview"):
        assert sent_to(elsewhere).startswith("/console/alerts/")


def test_a_viewer_reads_which_role_acknowledges(sign_in: SignIn) -> None:
    alert = AlertFactory()
    text = sign_in("viewer").get(f"/console/alerts/{alert.public_id}/").content.decode()
    assert "Acknowledging needs the role operator." in text
    assert "<textarea" not in text


def test_the_evidence_of_an_alert_links_to_its_job(operator: Client) -> None:
    attempt = AttemptFactory()
    alert = AlertFactory(
        subject=f"attempt:{attempt.public_id}", details={"job": attempt.job.public_id, "channel": "heron-a"}
    )
    text = operator.get(f"/console/alerts/{alert.public_id}/").content.decode()
    assert f'href="/console/jobs/{attempt.job.public_id}/"' in text
    assert f'href="/console/jobs/{attempt.job.public_id}/#{attempt.public_id}"' in text
    assert "heron-a" in text


def test_the_same_condition_before_stands_on_the_page(operator: Client) -> None:
    now = timezone.now()
    before = AlertFactory(
        subject="channel:heron-a",
        acknowledged=True,
        resolved=True,
        opened_at=now - timedelta(days=2),
        last_seen_at=now - timedelta(days=2),
        resolved_at=now - timedelta(days=1),
    )
    again = AlertFactory(subject="channel:heron-a", opened_at=now, last_seen_at=now)
    response = operator.get(f"/console/alerts/{again.public_id}/")
    assert response.context["similar"] == [before]


def test_g16_no_alert_says_so_as_a_result(operator: Client) -> None:
    assert "No alert is firing" in operator.get("/console/alerts/").content.decode()
    AlertFactory(acknowledged=True, resolved=True)
    assert "The last one ended at" in operator.get("/console/alerts/").content.decode()


def test_an_alert_that_does_not_exist_is_not_found(operator: Client) -> None:
    assert operator.get("/console/alerts/alr_nothing/").status_code == 404
    assert operator.post("/console/alerts/alr_nothing/acknowledge/").status_code == 404


def test_a9_what_was_raised_again_shows_the_first_acknowledgement_and_asks_for_a_new_one(
    operator: Client,
) -> None:
    now = timezone.now()
    alert = AlertFactory(
        first_acknowledged_at=now - timedelta(hours=1),
        first_acknowledged_by="wang.l",
        first_note="restarting it",
        reraised_at=now - timedelta(minutes=29),
        reraises=2,
    )
    text = operator.get(f"/console/alerts/{alert.public_id}/").content.decode()
    assert "Acknowledged first by wang.l" in text
    assert "restarting it" in text
    assert "Raised again 2 times" in text
    assert f'action="/console/alerts/{alert.public_id}/acknowledge/"' in text
    acknowledge(operator, alert)
    assert (
        "Acknowledged first by wang.l" in operator.get(f"/console/alerts/{alert.public_id}/").content.decode()
    )


def test_the_messages_about_an_alert_are_seen_and_sent_again_by_hand(
    operator: Client, sign_in: SignIn, settings: Any
) -> None:
    settings.ALERT_WEBHOOK_URL, settings.ALERT_EMAILS = "https://ops.example.org/alerts", ["ops@example.org"]
    alert = AlertFactory()
    page = f"/console/alerts/{alert.public_id}/"
    assert "Nobody is told of it" in operator.get(page).content.decode()
    queue_deliveries(alert, timezone.now())
    AlertDelivery.objects.filter(means="email").update(
        state="given_up", tries=8, next_try_at=None, last_error="SMTPServerDisconnected"
    )
    text = operator.get(page).content.decode()
    for told in ("ops.example.org", "On its way", "Given up", "8 tries", "SMTPServerDisconnected"):
        assert told in text
    assert text.count("Send again") == 1
    assert "Send again" not in sign_in("viewer", username="wang.l").get(page).content.decode()

    given_up, on_its_way = (
        AlertDelivery.objects.get(means="email"),
        AlertDelivery.objects.get(means="webhook"),
    )
    said = operator.post(f"{page}redeliver/", {"delivery": given_up.public_id}, follow=True).content.decode()
    assert "It is sent again." in said
    given_up.refresh_from_db()
    assert (given_up.state, given_up.tries) == ("pending", 0)
    said = operator.post(
        f"{page}redeliver/", {"delivery": on_its_way.public_id}, follow=True
    ).content.decode()
    assert "It is still on its way." in said


def test_alerts_with_one_title_are_told_apart_by_model_supply_channel_and_job(operator: Client) -> None:
    attempts = [AttemptFactory(), AttemptFactory()]
    alerts = [warning_of(attempt) for attempt in attempts]
    text = operator.get("/console/alerts/").content.decode()
    for attempt, alert in zip(attempts, alerts, strict=True):
        card = text[text.index(f'id="{alert.public_id}"') :].split("</li>")[0]
        names = (attempt.job.public_model.slug, attempt.supply.slug, attempt.channel.slug)
        assert all(name in card for name in names)
        assert attempt.public_id[-4:] in card
        assert attempt.job.public_id[-4:] in card
    assert "Public model" in operator.get(f"/console/alerts/{alerts[0].public_id}/").content.decode()


def test_an_alert_of_an_attempt_leads_to_its_desk_and_asks_for_the_note_before_the_button(
    operator: Client,
) -> None:
    attempt = AttemptFactory()
    text = operator.get(f"/console/alerts/{warning_of(attempt).public_id}/").content.decode()
    assert f'id="next-place" href="/console/uncertain/{attempt.public_id}/"' in text
    assert operator.get(f"/console/uncertain/{attempt.public_id}/").status_code == 200
    assert text.index('id="note"') < text.index('data-key="a"')


def test_only_a_critical_alert_is_said_to_leave_the_header(operator: Client) -> None:
    told = [
        operator.get(f"/console/alerts/{alert.public_id}/").content.decode()
        for alert in (warning_of(AttemptFactory()), AlertFactory())
    ]
    assert ["out of the header" in text for text in told] == [False, True]


def test_the_menu_counts_warnings_that_nobody_is_on_and_strips_say_what_they_are_about(
    operator: Client,
) -> None:
    AlertFactory(code="no_dispatcher", subject="supply:heron-hd")
    warning = warning_of(AttemptFactory())
    text = operator.get("/console/jobs/").content.decode()
    assert '<span id="nav-alerts" class="count">2<' in text
    strip = text[text.index('class="strip"') :].split("</div>")[0]
    assert "heron-hd" in strip
    acknowledge(operator, warning)
    assert '<span id="nav-alerts" class="count">1<' in operator.get("/console/jobs/").content.decode()


def warning_of(attempt: Attempt) -> Alert:
    alert: Alert = AlertFactory(
        code="submission_uncertain",
        severity="warning",
        subject=f"attempt:{attempt.public_id}",
        details={"job": attempt.job.public_id, "channel": attempt.channel.slug},
    )
    return alert
