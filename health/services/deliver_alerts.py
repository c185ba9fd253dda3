"""Sends what is queued about alerts, outside of any transaction."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import requests
from django.core.mail import EmailMessage
from django.db import connection, transaction
from django.db.models import F

from health.deliveries import body, next_try_at, subject_line, targets, text
from health.models import AlertDelivery
from health.webhook_signature import SecretError, signature_headers

SENDER_LOCK = 7_302  # advisory, of the session
BATCH = 8
# A process that dies while sending leaves its rows to the next one after this: at least once, not at most.
CLAIMED_FOR = timedelta(minutes=2)
TIMEOUT_S = (5, 10)  # to connect, to answer

State = AlertDelivery.State


def deliver_alerts(now: datetime) -> int:
    """Tries every delivery that is due, at most BATCH, and says how many arrived.

    None while another process sends: a receiver that hangs occupies one worker, never all of them."""
    with _alone() as alone:
        return sum(_deliver(delivery, now) for delivery in _claimed(now)) if alone else 0


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [SENDER_LOCK])
        alone = bool(cursor.fetchone()[0])
        try:
            yield alone
        finally:
            if alone:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [SENDER_LOCK])


def _claimed(now: datetime) -> list[AlertDelivery]:
    """Critical alerts first, each group oldest first."""
    with transaction.atomic():
        due = AlertDelivery.objects.filter(state=State.PENDING, next_try_at__lte=now)
        in_order = due.select_related("alert").order_by("alert__severity", "next_try_at", "pk")
        rows = list(in_order.select_for_update(skip_locked=True, of=("self",))[:BATCH])
        AlertDelivery.objects.filter(pk__in=[row.pk for row in rows]).update(
            tries=F("tries") + 1, next_try_at=now + CLAIMED_FOR
        )
    for row in rows:
        row.tries += 1
    return rows


def _deliver(delivery: AlertDelivery, now: datetime) -> bool:
    send = _post if delivery.means == AlertDelivery.Means.WEBHOOK else _mail
    problem = send(delivery, now)
    claimed = AlertDelivery.objects.filter(pk=delivery.pk, state=State.PENDING, tries=delivery.tries)
    if not problem:
        claimed.update(state=State.DELIVERED, delivered_at=now, next_try_at=None, last_error="")
        return True
    again_at = next_try_at(delivery.tries, now)
    claimed.update(
        state=State.PENDING if again_at else State.GIVEN_UP, next_try_at=again_at, last_error=problem[:200]
    )
    return False


def _post(delivery: AlertDelivery, now: datetime) -> str:
    """What went wrong, or nothing. The address is the installation's own setting, so it needs no guard
    against private networks; a redirect is no arrival."""
    content = body(delivery.alert)
    try:
        headers = signature_headers(delivery.public_id, content, targets().webhook_secret, now)
        with requests.post(
            delivery.target,
            data=content,
            headers=headers | {"content-type": "application/json"},
            timeout=TIMEOUT_S,
            allow_redirects=False,
            stream=True,  # the answer's body is nobody's business
        ) as answer:
            return "" if 200 <= answer.status_code < 300 else f"HTTP {answer.status_code}"
    except (requests.RequestException, SecretError) as error:
        return type(error).__name__


def _mail(delivery: AlertDelivery, _now: datetime) -> str:
    mail = EmailMessage(subject_line(delivery.alert), text(delivery.alert), to=[delivery.target])
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        return type(error).__name__
    return ""
