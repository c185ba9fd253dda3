"""Alerts reach the webhook and the mailbox of the installation, or say why not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.db.backends.utils import CursorWrapper

from catalog.audit import Actor
from catalog.models import AuditEntry
from dispatch.sending import may_still_send
from health.alerts import acknowledge, raise_alert, reraise_acknowledged
from health.deliveries import RETRY_AFTER
from health.models import Alert, AlertDelivery
from health.services.deliver_alerts import BATCH, CLAIMED_FOR, SENDER_LOCKS, deliver_alerts
from health.services.redeliver import redeliver
from health.webhook_signature import SecretError, signature_headers, signing_key
from tests.alert_receiver import SECRET, Receiver, signature_of
from tests.factories import NOW
from tests.mail_server import mail_server

pytestmark = pytest.mark.django_db
SMTP = "django.core.mail.backends.smtp.EmailBackend"


@contextmanager
def another_session() -> Iterator[CursorWrapper]:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            yield cursor
    finally:
        other.close()


def lost(key: str = "1", code: str = "output_lost") -> Alert:
    return raise_alert(code, subject="attempt:att_1", dedupe_key=key, details={"job": "job_1"}, now=NOW)


def test_a_webhook_carries_ids_and_a_link_signed_by_the_standard(receiver: Receiver) -> None:
    alert = lost()
    assert deliver_alerts(NOW) == 1
    headers, content = receiver.received[0]
    told = json.loads(content)
    assert told["type"] == "alert.opened"
    assert told["data"]["url"] == f"https://frameyard.example/console/alerts/{alert.public_id}/"
    assert headers["webhook-signature"] == signature_of(headers, content)
    assert int(headers["webhook-timestamp"]) == NOW.timestamp()


def test_the_signature_is_that_of_the_published_example() -> None:
    headers = signature_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        NOW.fromtimestamp(1614265330, NOW.tzinfo),
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_mail_goes_to_every_address(settings: Any) -> None:
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
    settings.ALERT_EMAILS = ["one@example.org", "two@example.org"]
    lost()
    assert deliver_alerts(NOW) == 2
    assert sorted(message.to[0] for message in mail.outbox) == ["one@example.org", "two@example.org"]
    assert "output_lost" in mail.outbox[0].subject
    assert "job: job_1" in mail.outbox[0].body


def test_a_condition_that_persists_is_told_once(receiver: Receiver) -> None:
    for _ in range(500):
        lost()
    deliver_alerts(NOW)
    deliver_alerts(NOW)
    assert len(receiver.received) == 1


def test_without_targets_nothing_is_queued() -> None:
    lost()
    assert not AlertDelivery.objects.exists()


def test_a_receiver_that_is_down_is_tried_for_a_day_under_one_message_id(receiver: Receiver) -> None:
    receiver.status = 503
    lost()
    now = NOW
    for wait in RETRY_AFTER:
        assert deliver_alerts(now) == 0
        assert deliver_alerts(now + wait - timedelta(seconds=1)) == 0
        now += wait
    receiver.status = 200
    assert deliver_alerts(now) == 1
    assert len(receiver.received) == len(RETRY_AFTER) + 1
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1
    assert now - NOW > timedelta(hours=20)


def test_what_never_arrives_is_given_up_and_says_why(receiver: Receiver) -> None:
    receiver.status = 500
    lost()
    now = NOW
    for wait in (*RETRY_AFTER, timedelta(0)):
        deliver_alerts(now)
        now += wait
    delivery = AlertDelivery.objects.get()
    assert (delivery.state, delivery.last_error, delivery.next_try_at) == ("given_up", "HTTP 500", None)


def test_a_redirect_is_no_arrival_and_is_not_followed(receiver: Receiver) -> None:
    receiver.status, receiver.headers = 302, {"location": receiver.url}
    lost()
    assert deliver_alerts(NOW) == 0
    assert len(receiver.received) == 1
    assert AlertDelivery.objects.get().last_error == "HTTP 302"


def test_a_receiver_that_is_not_there_is_tried_again(settings: Any) -> None:
    settings.ALERT_WEBHOOK_URL, settings.ALERT_WEBHOOK_SECRET = "http://127.0.0.1:1/", SECRET
    lost()
    assert deliver_alerts(NOW) == 0
    assert AlertDelivery.objects.get().last_error == "ConnectionError"


def test_critical_alerts_are_sent_first_and_count_into_no_batch(receiver: Receiver) -> None:
    for number in range(BATCH + 5):
        lost(f"w{number}", "stuck_attempt")
    for number in range(BATCH + 5):
        lost(f"c{number}")
    assert deliver_alerts(NOW) == (BATCH + 5) + BATCH
    severities = [told["data"]["severity"] for told in receiver.told()]
    assert severities == ["critical"] * (BATCH + 5) + ["warning"] * BATCH


def test_a_receiver_that_takes_nothing_is_not_asked_for_every_critical_message_at_once(
    receiver: Receiver,
) -> None:
    receiver.status = 503
    for number in range(BATCH + 5):
        lost(f"c{number}")
    deliver_alerts(NOW)
    assert len(receiver.received) == BATCH


def test_a_sender_that_died_leaves_its_message_to_the_next(receiver: Receiver) -> None:
    lost()
    AlertDelivery.objects.update(tries=1, next_try_at=NOW + CLAIMED_FOR)  # claimed, then killed
    assert deliver_alerts(NOW) == 0
    assert deliver_alerts(NOW + CLAIMED_FOR) == 1


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_send_each_message_once(receiver: Receiver) -> None:
    for number in range(BATCH):
        lost(f"c{number}")

    def send() -> None:
        deliver_alerts(NOW)
        connection.close()

    senders = [threading.Thread(target=send) for _ in range(2)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(receiver.received) == BATCH


@pytest.mark.parametrize("secret", ["", "secret", "whsec_", "whsec_!!!", "whsec_c2hvcnQ="])
def test_a_secret_that_cannot_sign_is_refused(secret: str) -> None:
    with pytest.raises(SecretError):
        signing_key(secret)


@pytest.mark.parametrize(("busy", "told"), [(True, ["warning"]), (False, ["critical"])])
def test_a_receiver_that_hangs_keeps_one_worker_and_no_critical_message_behind_a_warning(
    receiver: Receiver, busy: bool, told: list[str]
) -> None:
    """Another session is still at it: with the critical messages, or with the others."""
    lost("c"), lost("w", "stuck_attempt")
    with another_session() as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", SENDER_LOCKS[busy])
        assert deliver_alerts(NOW) == 1
        assert [each["data"]["severity"] for each in receiver.told()] == told
        other.execute("SELECT pg_advisory_unlock(%s, %s)", SENDER_LOCKS[busy])
        assert deliver_alerts(NOW) == 1


@pytest.mark.parametrize("lock", SENDER_LOCKS.values())
def test_a_sender_of_messages_is_never_taken_for_the_sender_of_an_attempt(lock: tuple[int, int]) -> None:
    """Both hold a numbered lock, and attempts are numbered from 1."""
    with another_session() as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", lock)
        assert not may_still_send(lock[1])


def test_an_alert_that_is_raised_again_is_told_again(receiver: Receiver) -> None:
    alert = lost()
    deliver_alerts(NOW)
    later = NOW + timedelta(minutes=30)
    acknowledge(alert.pk, "li.m", "", NOW)
    raise_alert(alert.code, subject=alert.subject, dedupe_key="1", details={}, now=later)
    reraise_acknowledged(NOW, later)
    assert deliver_alerts(later) == 1
    assert [told["type"] for told in receiver.told()] == ["alert.opened", "alert.reraised"]
    assert receiver.told()[1]["timestamp"] == later.isoformat().replace("+00:00", "Z")
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 2


def test_s40e_what_was_given_up_is_sent_again_by_hand_under_the_same_id(receiver: Receiver) -> None:
    receiver.status = 500
    alert = lost()
    now, by = NOW, Actor("li.m", "console")
    for wait in (*RETRY_AFTER, timedelta(0)):
        deliver_alerts(now)
        now += wait
    delivery = AlertDelivery.objects.get()
    receiver.status = 204
    assert not redeliver(delivery.public_id, by, now, of_alert=alert.pk + 1)
    assert redeliver(delivery.public_id, by, now, of_alert=alert.pk)
    assert not redeliver(delivery.public_id, by, now, of_alert=alert.pk)  # it is on its way
    assert deliver_alerts(now) == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries, delivery.delivered_at) == ("delivered", 1, now)
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1
    entry = AuditEntry.objects.get(action="send alert again")
    assert entry.before == {"state": "given_up", "tries": len(RETRY_AFTER) + 1, "last_error": "HTTP 500"}


def test_mail_arrives_over_a_real_server_and_a_server_that_refuses_is_tried_again(settings: Any) -> None:
    settings.ALERT_EMAILS = ["ops@example.org"]
    alert = lost()
    with mail_server() as server:
        settings.MAILERS = {
            "default": {"BACKEND": SMTP, "OPTIONS": {"host": "127.0.0.1", "port": server.port}}
        }
        server.refuses = True
        assert deliver_alerts(NOW) == 0
        assert AlertDelivery.objects.get().last_error.startswith("SMTP")
        server.refuses = False
        assert deliver_alerts(NOW + RETRY_AFTER[0]) == 1
    sender, recipient, content = server.received[0]
    assert (sender, recipient) == (settings.DEFAULT_FROM_EMAIL, "ops@example.org")
    assert f"/console/alerts/{alert.public_id}/" in content
    assert "critical: output_lost attempt:att_1" in content.replace("\r\n ", " ")
