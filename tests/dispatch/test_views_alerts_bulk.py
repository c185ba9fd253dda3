"""Several alerts at once: ticked ones, or all that match; never a critical one. And who works on an alert."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from catalog.models import AuditEntry
from dispatch.views.alert_guidance import GUIDANCE, guidance_of
from health.alerts import SEVERITIES
from health.models import Alert
from tests.console import SignIn
from tests.factories import AlertFactory

LIST, TICKED, MATCHING = "/console/alerts/", "/console/alerts/ticked/", "/console/alerts/matching/"
NOW = f"{MATCHING}now/"


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    return sign_in("operator")


def warnings(count: int, **values: Any) -> list[Alert]:
    hour = timezone.now() - timedelta(hours=1)
    usual = {"code": "stuck_attempt", "severity": "warning", "opened_at": hour, "last_seen_at": hour}
    return [AlertFactory(**(usual | values)) for _ in range(count)]


def acknowledged() -> set[str]:
    return set(Alert.objects.exclude(acknowledged_at=None).values_list("public_id", flat=True))


def test_a7_g14_ticked_warnings_are_acknowledged_together_and_stay_ticked(operator: Client) -> None:
    alerts = warnings(4)
    ids = [alert.public_id for alert in alerts[:3]]
    back = "/console/alerts/?code=stuck_attempt&code=lease_drift"
    response = operator.post(TICKED, {"ticked": ids, "next": back}, follow=True)
    text = response.content.decode()
    assert "3 alerts are acknowledged." in text
    assert acknowledged() == set(ids)
    assert AuditEntry.objects.filter(action="acknowledge alert").count() == 3
    for alert in alerts:
        box = text.split(f'id="{alert.public_id}-tick"')[1].split(">")[0]
        assert ("checked" in box) is (alert.public_id in ids)
    assert response.redirect_chain[-1][0].startswith("/console/alerts/?code=stuck_attempt&code=lease_drift")


def test_a7_a_critical_alert_can_not_be_ticked_and_is_refused_with_all_the_others(operator: Client) -> None:
    (warning,) = warnings(1)
    critical, owned = AlertFactory(), AlertFactory(acknowledged=True)
    text = operator.get(LIST).content.decode()
    assert f'id="{warning.public_id}-tick"' in text
    assert f'id="{critical.public_id}-tick"' not in text
    assert f'id="{owned.public_id}-tick"' not in text
    before = acknowledged()
    response = operator.post(TICKED, {"ticked": [warning.public_id, critical.public_id]})
    assert response.status_code == 422
    assert f"/console/alerts/{critical.public_id}/" in response.content.decode()
    assert acknowledged() == before
    assert not AuditEntry.objects.exists()


def test_where_nothing_matches_there_is_nothing_to_press(operator: Client) -> None:
    text = operator.get(f"{MATCHING}?severity=warning").content.decode()
    assert "No alert fires that nobody is on." in text
    assert 'id="confirm"' not in text


def test_g15_all_that_match_states_filter_and_count_however_often_it_is_loaded(operator: Client) -> None:
    warnings(3)
    warnings(2, code="latency_over_baseline")
    AlertFactory()
    listed = operator.get(LIST, {"code": "stuck_attempt"})
    address = f"{MATCHING}?{listed.context['matching']}"
    first = operator.get(address)
    assert (first.context["bulk"].count, len(first.context["samples"])) == (3, 3)
    assert [str(word) for word in first.context["words"]] == [
        "An attempt is past its time and its outcome is not known."
    ]
    warnings(1, opened_at=timezone.now(), last_seen_at=timezone.now())
    again = operator.get(address)
    assert again.context["bulk"] == first.context["bulk"]
    form = {"confirm": first.context["token"], "query": first.context["bulk"].address, "note": "known"}
    response = operator.post(NOW, form)
    assert response["Location"] == "/console/alerts/?code=stuck_attempt"
    assert len(acknowledged()) == 3
    assert operator.post(NOW, form).status_code == 409, "nothing of that is left"
    assert AuditEntry.objects.filter(action="acknowledge alert").count() == 3


def test_g15_a_changed_filter_or_count_is_refused_and_changes_nothing(operator: Client) -> None:
    alerts = warnings(3)
    warnings(1, code="latency_over_baseline")
    page = operator.get(f"{MATCHING}?code=stuck_attempt")
    bulk, token = page.context["bulk"], page.context["token"]
    other = bulk.address.replace("stuck_attempt", "latency_over_baseline")
    everything = bulk.address.partition("&")[2]
    for query in (other, everything, "", "code=stuck_attempt"):
        response = operator.post(NOW, {"confirm": token, "query": query})
        assert response.status_code == 409, query
        assert "Nothing was changed" in response.content.decode()
    Alert.objects.filter(pk=alerts[0].pk).update(resolved_at=timezone.now(), resolved_why="it ended")
    response = operator.post(NOW, {"confirm": token, "query": bulk.address})
    assert response.status_code == 409
    assert response.context["bulk"].count == 2, "the page says how it stands now"
    assert not acknowledged()
    assert operator.post(NOW, {"query": bulk.address}).status_code == 403, "no confirming page"


def test_who_was_first_keeps_an_alert_that_is_ticked_again(operator: Client, sign_in: SignIn) -> None:
    (one,) = warnings(1)
    operator.post(TICKED, {"ticked": one.public_id})
    wang = sign_in("operator", username="wang.l")
    text = wang.post(TICKED, {"ticked": one.public_id}, follow=True).content.decode()
    assert "0 alerts are acknowledged." in text
    assert "1 was before." in text
    one.refresh_from_db()
    assert one.acknowledged_by == "li.m"


def test_the_list_is_narrowed_and_says_when_a_filter_hides_all(operator: Client) -> None:
    (mine,) = warnings(1, subject="channel:heron-a")
    warnings(1, code="latency_over_baseline")
    found = operator.get(LIST, {"subject": "channel:heron"}).context["groups"]
    assert found.firing == [mine]
    assert len(operator.get(LIST, {"severity": "warning"}).context["groups"].firing) == 2
    hidden = operator.get(LIST, {"severity": "info"}).content.decode()
    assert "No alert matches this filter" in hidden
    assert "No alert is firing" not in hidden


def test_an_alert_is_taken_over_given_back_and_noted_on(operator: Client, sign_in: SignIn) -> None:
    (alert,) = warnings(1)
    page, own = f"/console/alerts/{alert.public_id}/", f"/console/alerts/{alert.public_id}/own/"
    operator.post(TICKED, {"ticked": alert.public_id})
    wang = sign_in("operator", username="wang.l")
    assert "Take it over" in wang.get(page).content.decode()
    assert "You are on it now." in wang.post(own, {"do": "take_over"}, follow=True).content.decode()
    alert.refresh_from_db()
    assert alert.acknowledged_by == "wang.l"
    noted = wang.post(own, {"do": "note", "note": "the provider knows"}, follow=True).content.decode()
    assert "the provider knows" in noted
    assert "note on alert" in noted
    wang.post(own, {"do": "unacknowledge"})
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.resolved_at) == (None, None)
    text = wang.get(page).content.decode()
    assert "take over alert" in text
    assert "Nothing was changed." in wang.post(own, {"do": "take_over"}, follow=True).content.decode()
    viewer = sign_in("viewer", username="zhou")
    assert viewer.post(own, {"do": "note", "note": "x"}).status_code == 403


def test_l4_a_beat_moves_no_alert_and_announces_what_came(operator: Client) -> None:
    beat = {"HX-Request": "true"}
    critical, (warning,) = AlertFactory(), warnings(1)
    shown = [f"needs:{critical.public_id}", f"firing:{warning.public_id}"]
    operator.post(f"/console/alerts/{critical.public_id}/acknowledge/")
    late = AlertFactory()
    response = operator.get(LIST, headers=beat | {"Console-Rows": ",".join(shown)})
    cards = response.context["cards"]
    shown_now = [card.public_id for group in ("needs", "firing") for card in cards[group]]
    assert shown_now == [critical.public_id, warning.public_id]
    text = response.content.decode()
    assert "Acknowledged by li.m" in text, "its value changed in place"
    assert "1 new. Show" in text
    assert f'id="{late.public_id}"' not in text
    Alert.objects.update(acknowledged_at=timezone.now(), acknowledged_by="li.m")
    Alert.objects.update(resolved_at=timezone.now() - timedelta(days=2), resolved_why="it ended")
    assert "No alert is firing" in operator.get(LIST, headers=beat).content.decode()
    AlertFactory()
    quiet = operator.get(LIST, headers=beat).content.decode()
    assert "1 new. Show" in quiet
    assert "No alert is firing" not in quiet


def test_every_code_has_its_guidance_and_its_page_opens(operator: Client) -> None:
    assert set(GUIDANCE) == set(SEVERITIES)
    with translation.override("zh-hans"):
        assert not [code for code, words in GUIDANCE.items() if str(words).isascii()]
    for code in GUIDANCE:
        guidance = guidance_of(code, {})
        assert guidance is not None
        assert operator.get(guidance.address).status_code == 200, code
    job = guidance_of("output_lost", {"job": "job_1"})
    assert job is not None
    assert job.address == "/console/jobs/job_1/"
    text = operator.get(f"/console/alerts/{AlertFactory().public_id}/").content.decode()
    assert "Look in the provider&#x27;s console" in text


def test_p1_the_list_of_alerts_asks_as_often_however_long_it_is(operator: Client) -> None:
    operator.get(LIST)
    counts = []
    for _ in range(2):
        warnings(10)
        AlertFactory.create_batch(5)
        with CaptureQueriesContext(connection) as queries:
            operator.get(LIST)
        counts.append(len(queries))
    assert counts[0] == counts[1]
