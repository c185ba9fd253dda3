"""What workers run: each takes ids, reads the clock, calls one service, and returns nothing.

A task is only a doorbell. It may ring twice, late or never: every service begins with a claim, and the
pulse rings again for whatever is due."""

from django.utils.timezone import now

from dispatch import due, pulse
from dispatch.services import audit_replays as auditing
from dispatch.services import cancel_at_provider as cancelling
from dispatch.services import dispatch_scan, fetch_output, follow, keep_house
from dispatch.services import forecast_publication as forecasting
from dispatch.services import reconcile as reconciling
from dispatch.services import recover as recovering
from dispatch.services import submit as submitting
from dispatch.services import sweep_incoming as sweeping
from dispatch.services import try_supply as trying
from dispatch.services.check_accounts import begin_due_recoveries
from dispatch.signs_of_life import at_work
from health.services import deliver_alerts as delivering


@at_work("control")
def scan() -> None:
    pulse.answer("scan", now())
    if due.is_scan_due(now()):
        dispatch_scan.scan(now)


@at_work("control")
def scan_now() -> None:
    """The wake-up rung by the transaction that made a job or freed a slot."""
    dispatch_scan.scan(now)


@at_work("control")
def reconcile() -> None:
    pulse.answer("reconcile", now())
    reconciling.reconcile(now())


@at_work("control")
def housekeeping() -> None:
    pulse.answer("housekeeping", now())
    keep_house.keep_house(now())


@at_work("control")
def sweep_incoming() -> None:
    pulse.answer("sweep_incoming", now())
    sweeping.sweep_incoming(now())


@at_work("traffic")
def poll() -> None:
    pulse.answer("poll", now())
    follow.poll_due(now)


@at_work("traffic")
def begin_recoveries() -> None:
    pulse.answer("begin_recoveries", now())
    begin_due_recoveries(now())


@at_work("traffic")
def deliver_alerts() -> None:
    pulse.answer("deliver_alerts", now())
    delivering.deliver_alerts(now())


@at_work("traffic")
def audit_replays() -> None:
    pulse.answer("audit_replays", now())
    auditing.audit_replays(now())


@at_work("traffic")
def submit(*attempt_ids: int) -> None:
    submitting.submit(attempt_ids, now)


@at_work("traffic")
def recover(attempt_id: int) -> None:
    recovering.recover(attempt_id, now)


@at_work("traffic")
def cancel_at_provider(attempt_id: int) -> None:
    cancelling.cancel_at_provider(attempt_id, now)


@at_work("traffic")
def fetch(attempt_id: int) -> None:
    fetch_output.fetch_output(attempt_id, now)


@at_work("traffic")
def forecast_publication(watch_id: int) -> None:
    forecasting.forecast_publication(watch_id, now())


@at_work("traffic")
def send_trial(trial_id: int) -> None:
    trying.send_trial(trial_id, now)
