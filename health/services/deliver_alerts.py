"""Sends what is queued about alerts, outside of any transaction."""

import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import requests
from django.core.mail import EmailMessage
from django.db import connection, transaction
from django.db.models import F, Q

from health.deliveries import body, next_try_at, subject_line, targets, text
from health.models import AlertDelivery, Severity
from health.webhook_signature import SecretError, signature_headers

# By "is critical"; advisory, of the session, in a space of numbers that nobody else uses.
SENDER_LOCKS = {True: (7_303, 1), False: (7_303, 2)}
BATCH = 8
# A process that dies while sending leaves its rows to the next one after this: at least once, not at most.
CLAIMED_FOR = timedelta(minutes=2)
TIMEOUT_S = (5, 10)  # to connect, to answer

State = AlertDelivery.State


def deliver_alerts(now: datetime) -> int:
    """Tries the deliveries that are due, and says how many arrived: all critical ones, then BATCH others.

    None of a kind while another process sends that kind: a receiver that hangs occupies one worker of each,
    and a critical message neither counts into a batch nor waits behind one that hangs on a warning."""
    return _send_critical(now) + _send_others(now)


def _send_critical(now: datetime) -> int:
    """Goes on as long as the receiver takes them: for one that is down, the next bell is soon enough."""
    arrived = 0
    with _alone(SENDER_LOCKS[True]) as alone:
        while alone and (of_batch := sum(_deliver(row, now) for row in _claimed(now, critical=True))):
            arrived += of_batch
    return arrived


def _send_others(now: datetime) -> int:
    with _alone(SENDER_LOCKS[False]) as alone:
        return sum(_deliver(delivery, now) for delivery in _claimed(now, critical=False)) if alone else 0


@contextmanager
def _alone(lock: tuple[int, int]) -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", lock)
        alone = bool(cursor.fetchone()[0])
        try:
            yield alone
        finally:
            if alone:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def _claimed(now: datetime, *, critical: bool) -> list[AlertDelivery]:
    """Oldest first."""
    with transaction.atomic():
        due = AlertDelivery.objects.filter(state=State.PENDING, next_try_at__lte=now)
        is_critical = Q(alert__severity=Severity.CRITICAL)
        of_kind = due.filter(is_critical if critical else ~is_critical)
        in_order = of_kind.select_related("alert").order_by("next_try_at", "pk")
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
    content = body(delivery)
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
    mail = EmailMessage(subject_line(delivery), text(delivery), to=[delivery.target])
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        return type(error).__name__
    return ""
