"""What workers run: each takes ids, reads the clock, calls one service, and returns nothing.

A task is only a doorbell. It may ring twice, late or never: every service begins with a claim, and the
pulse rings again for whatever is due."""

from django.utils import timezone

from dispatch import pulse
from dispatch.services import cancel_at_provider as cancelling
from dispatch.services import dispatch_scan, fetch_output, follow, reconcile as reconciling
from dispatch.services import recover as recovering
from dispatch.services import submit as submitting


def scan() -> None:
    pulse.answer("scan", timezone.now())
    dispatch_scan.scan(timezone.now())


def scan_now() -> None:
    """The wake-up rung by the transaction that made a job or freed a slot."""
    dispatch_scan.scan(timezone.now())


def reconcile() -> None:
    pulse.answer("reconcile", timezone.now())
    reconciling.reconcile(timezone.now())


def housekeeping() -> None:
    pulse.answer("housekeeping", timezone.now())
    reconciling.recount(timezone.now())


def poll() -> None:
    pulse.answer("poll", timezone.now())
    follow.poll_due(timezone.now)


def submit(attempt_id: int) -> None:
    submitting.submit(attempt_id, timezone.now)


def recover(attempt_id: int) -> None:
    recovering.recover(attempt_id, timezone.now)


def cancel_at_provider(attempt_id: int) -> None:
    cancelling.cancel_at_provider(attempt_id, timezone.now)


def fetch(attempt_id: int) -> None:
    fetch_output.fetch_output(attempt_id, timezone.now)
