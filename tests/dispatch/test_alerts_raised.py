"""Each alert is raised where its condition happens, and ends when that ends: through the whole engine."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as installation

from catalog.models import Channel, Supply
from catalog.providers.errors import UNSUPPORTED, error_of
from catalog.providers.types import Accepted, Rejected, Unknown
from catalog.revision import bump_revision
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Job, Occupancy, SelectionRound
from dispatch.moves import Move
from dispatch.queries.alert_subjects import told_by
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.routing.replay import replay
from dispatch.services import dispatch_scan, keep_house, record_submission
from dispatch.services.advance import advance
from dispatch.services.recover import abandon
from dispatch.services.watch_rates import watch_rates
from health.alerts import SEVERITIES, acknowledge, raise_alert
from health.models import Alert, ChannelHealth, HealthEvent, SupplyHealth
from tests.engine import Engine
from tests.factories import NOW

A = AttemptState
BEIJING, SINGAPORE = "ark-beijing", "ark-singapore"
SURGE = "submission_unknown_surge"


def script(engine: Engine, *rules: dict[str, Any], **more: Any) -> None:
    engine.simulator.script({"rules": list(rules), **more})


def firing() -> set[str]:
    return {f"{alert.code} {alert.subject}" for alert in Alert.objects.unresolved()}


def channels_of(job: Job) -> list[str]:
    return list(Attempt.objects.filter(job=job).order_by("number").values_list("channel__slug", flat=True))


@pytest.fixture
def roomy(engine: Engine) -> Engine:
    """Slots are no limit here, so that only the number of unknown outcomes matters."""
    Channel.objects.update(unknown_limit=8)
    Supply.objects.update(unknown_limit=8, concurrency=8)
    bump_revision()
    return engine


def surge(engine: Engine) -> list[Job]:
    """Three of five submissions to Beijing end unknown, and nobody can look for them."""
    lost = {"when": {"call": "submit"}, "times": 3, "do": {"answer": "drop_after_acceptance"}}
    script(engine, lost, {"when": {"call": "list"}, "do": {"answer": "not_json"}})
    jobs = []
    for _ in range(5):  # one after the other: those of one scan are sent at once
        jobs.append(engine.job())
        engine.drain()
    assert {each for job in jobs for each in channels_of(job)} == {BEIJING}
    return jobs


def test_a_surge_of_unknown_submissions_stops_new_ones_to_its_channel_until_it_is_resolved(
    roomy: Engine, settings: Any
) -> None:
    settings.ALERT_RERAISE_AFTER_S = 300
    lost = surge(roomy)
    roomy.run(61, step_s=61)
    alert = Alert.objects.get(code=SURGE)
    assert (alert.severity, alert.subject, alert.count) == ("critical", f"channel:{BEIJING}", 1)
    assert alert.details == {"measured": "60.0 %", "samples": 5, "baseline": "0.0 %", "limit": "20.0 %"}
    assert not ChannelHealth.objects.exclude(state="healthy").exists()

    job = roomy.job()
    roomy.finish(job)
    assert channels_of(job) == [SINGAPORE], "the next layer is open"
    selection = SelectionRound.objects.filter(job=job).latest("number")
    found = selection.snapshot["decision"]["candidates"]
    of_channel = Supply.objects.filter(channel__slug=BEIJING).values_list("slug", flat=True)
    assert found["beijing-seedance-2-0"]["reason"] == "not_before"
    assert {found[slug]["reason"] for slug in of_channel if slug in found} <= {
        "not_before",
        "layer_not_reached",
    }
    assert replay(selection.snapshot, recorded_documents(selection.snapshot)) == []

    assert acknowledge(alert.pk, "li.m", "asking the provider", roomy.now)
    roomy.run(360, step_s=60)
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.first_acknowledged_by, alert.reraises) == (None, "li.m", 1)
    assert alert.count > 5, "it is seen each minute"

    roomy.run(600, step_s=60)
    alert.refresh_from_db()
    assert alert.resolved_at is not None, "fifteen minutes after the last of them"
    again = roomy.job()
    roomy.finish(again)
    assert channels_of(again) == [BEIJING]
    assert {roomy.attempts(each)[0] for each in lost[:3]} == {A.SUBMISSION_UNCERTAIN}


def test_a_surge_found_between_selection_and_submission_is_stopped_at_the_guard(roomy: Engine) -> None:
    surge(roomy)
    before = len(roomy.simulator.world.log()["posts"])
    job = roomy.job()
    dispatch_scan.scan(lambda: roomy.now)
    assert roomy.attempts(job) == [A.READY]
    watch_rates(roomy.now)
    roomy.drain()
    first = Attempt.objects.get(job=job, number=1)
    assert (first.state, first.error_code, first.body_sent_at) == (A.FAILED, "not_created", None)
    roomy.finish(job)
    assert channels_of(job) == [BEIJING, SINGAPORE]
    assert len(roomy.simulator.world.log()["posts"]) == before + 1
    assert not HealthEvent.objects.filter(attempt=first.public_id).exists()


def test_an_unknown_submission_that_is_found_ends_its_alert_and_one_given_up_ends_the_next_day(
    roomy: Engine,
) -> None:
    done = roomy.job()
    roomy.finish(done)
    lost = {"when": {"call": "submit"}, "times": 2, "do": {"answer": "drop_after_acceptance"}}
    script(roomy, lost, {"when": {"call": "list"}, "do": {"answer": "not_json"}})
    found, given_up = roomy.job(), roomy.job()
    roomy.drain()
    ids = {job: Attempt.objects.get(job=job).public_id for job in (found, given_up)}
    assert firing() == {f"submission_uncertain attempt:{each}" for each in ids.values()}

    # What another door finds out, without a word to anybody, is noticed within a minute.
    known_to_end = f"attempt:{Attempt.objects.get(job=done).public_id}"
    for code in ("submission_uncertain", "stuck_attempt", "submission_abandoned"):
        key = f"{code}:{known_to_end.removeprefix('attempt:')}"
        raise_alert(code, subject=known_to_end, dedupe_key=key, details={}, now=roomy.now)
    keep_house.keep_house(roomy.now)
    assert firing() == {f"submission_uncertain attempt:{each}" for each in ids.values()}

    roomy.run(2_400, step_s=120)
    assert roomy.attempts(found) == roomy.attempts(given_up) == [A.ABANDONED]
    assert {f"submission_abandoned attempt:{each}" for each in ids.values()} <= firing()
    known = roomy.simulator.world._tasks
    for task in [task for task in known.values() if task.reference != ids[found]]:
        del known[task.id]
    roomy.simulator.script({"rules": [{"when": {"call": "list"}, "do": {}}]})
    roomy.run(8_000, step_s=1_000)
    assert firing() == {
        f"unmatched_charge attempt:{ids[found]}",
        f"submission_abandoned attempt:{ids[given_up]}",
    }
    charge = Alert.objects.get(code="unmatched_charge")
    assert charge.details["provider_job"] in known
    assert charge.severity == "critical"
    roomy.run(90_000, step_s=3_000)
    assert firing() == {f"unmatched_charge attempt:{ids[found]}"}


def test_an_acceptance_that_comes_after_the_end_is_a_charge_that_no_job_got(engine: Engine) -> None:
    """Its worker slept until the attempt was given up."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.select_related("job", "channel", "supply", "policy").get(job=job)
    sent = advance(Move(attempt.pk, attempt.state_version, A.SUBMITTING), engine.now)
    assert sent is not None
    record_submission.record_submission(sent, Unknown("sending", "cut off"), engine.now)
    attempt.refresh_from_db()
    abandon(attempt, engine.now)
    record_submission.record_submission(sent, Accepted("cgt-late"), engine.now)
    assert engine.attempts(job) == [A.ABANDONED]
    charge = Alert.objects.get(code="unmatched_charge")
    assert (charge.subject, charge.details["provider_job"]) == (f"attempt:{attempt.public_id}", "cgt-late")
    # Strips stand on every page and ask nothing: what they name is told when the alert is raised.
    for alert in (charge, Alert.objects.get(code="submission_abandoned")):
        about = told_by(alert)
        assert (about.supply, about.channel) == (attempt.supply.slug, attempt.channel.slug)
        assert (about.job, about.attempt) == (job.public_id, attempt.public_id)


def test_a_capability_that_a_provider_denies_is_told_once_and_harms_nobodys_health(engine: Engine) -> None:
    """No word of the simulated provider says it, so its answer is recorded as an adapter would give it."""
    job = engine.job()
    dispatch_scan.scan(lambda: engine.now)
    attempt = Attempt.objects.select_related("job", "channel", "supply").get(job=job)
    sent = advance(Move(attempt.pk, attempt.state_version, A.SUBMITTING), engine.now)
    assert sent is not None
    record_submission.record_submission(
        sent, Rejected(error_of(UNSUPPORTED, "no 4K here"), "awaiting"), engine.now
    )
    engine.finish(job)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    assert firing() == {"capability_mismatch supply:beijing-seedance-2-0"}
    assert Alert.objects.get().details["capability"] == attempt.capability_version.public_id
    assert not HealthEvent.objects.exists()
    keep_house.keep_house(engine.now + timedelta(days=2))
    assert firing() == set()


def test_a_credential_is_told_of_two_weeks_before_its_last_day_and_until_it_is_renewed(
    engine: Engine,
) -> None:
    today = NOW.date()
    Channel.objects.filter(slug=BEIJING).update(credential_expires_on=today + timedelta(days=15))
    Channel.objects.filter(slug=SINGAPORE).update(credential_expires_on=date(2020, 1, 1), state="disabled")
    keep_house.keep_house(NOW)
    assert firing() == set()
    keep_house.keep_house(NOW + timedelta(days=1))
    alert = Alert.objects.get(code="credential_expiring")
    assert (alert.subject, alert.details["days_left"]) == (f"channel:{BEIJING}", 14)
    Channel.objects.filter(slug=BEIJING).update(credential_expires_on=today + timedelta(days=365))
    keep_house.keep_house(NOW + timedelta(days=1, minutes=1))
    assert firing() == set()


def test_a_drift_of_slots_ends_with_the_count_that_finds_none(engine: Engine) -> None:
    engine.finish(engine.job())
    Occupancy.objects.filter(kind=Occupancy.Kind.CHANNEL).update(confirmed=3)
    keep_house.keep_house(engine.now)
    drifts = {each for each in firing() if each.startswith("lease_drift")}
    assert drifts
    keep_house.keep_house(engine.now + timedelta(minutes=1))
    assert not drifts & firing()


def test_a_chore_that_fails_keeps_no_other_from_its_work(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_now: Any) -> None:
        raise RuntimeError("broken")

    raise_alert("output_lost", subject="attempt:att_1", dedupe_key="1", details={}, now=engine.now)
    monkeypatch.setattr(keep_house, "CHORES", (broken, *keep_house.CHORES))
    with pytest.raises(ExceptionGroup, match="undone"):
        keep_house.keep_house(engine.now + timedelta(days=2))
    assert firing() == set()


def test_s29_a_customer_without_funds_is_nobodys_trouble_but_a_supplier_without_funds_is(
    engine: Engine,
) -> None:
    engine.customer.balance_micros = 0
    engine.customer.save(update_fields=["balance_micros"])
    assert {engine.submit().status_code for _ in range(100)} == {402}
    engine.run(61, step_s=61)
    assert not Alert.objects.exists()
    assert not ChannelHealth.objects.exists()
    assert not SupplyHealth.objects.exists()
    assert not Job.objects.exists()

    engine.customer.balance_micros = 1_000_000_000
    engine.customer.save(update_fields=["balance_micros"])
    script(engine, accounts={"beijing-account-key": {"state": "overdue"}})
    jobs = [engine.job(), engine.job(), engine.job()]
    engine.finish(*jobs)
    assert {job.state for job in jobs} == {"succeeded"}, "customers notice nothing"
    assert ChannelHealth.objects.get(channel__slug=BEIJING).state == "circuit_open"
    told = [alert.code for alert in Alert.objects.filter(subject__startswith="channel:")]
    assert told == ["channel_circuit_open"]
    later = engine.job()
    engine.finish(later)
    assert channels_of(later) == [SINGAPORE], "out at once: nobody else was sent there"


def test_the_page_about_alerts_tells_of_every_code_and_of_no_other() -> None:
    page = (Path(installation.BASE_DIR) / "docs" / "alerts.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert {code: severity for code, severity, *_ in rows} == dict(SEVERITIES)
    assert len(rows) == len(SEVERITIES)
    assert all(cell.strip() for row in rows for cell in row)


def test_a_switch_ends_no_alert_of_what_it_does_not_ask_for(engine: Engine) -> None:
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"fail": "InternalServiceError"}}
    script(engine, rule)
    switches = engine.job()
    engine.drain()
    assert channels_of(switches) == [BEIJING]
    ChannelHealth.objects.update_or_create(
        channel=Channel.objects.get(slug=BEIJING),
        defaults={"state": "circuit_open", "cooldown_until": engine.now + timedelta(hours=1)},
    )
    engine.job()
    engine.drain()
    told = f"exact_unavailable model:{switches.public_model.slug}"
    assert told in firing()
    while len(channels_of(switches)) == 1:
        engine.run(1)
    assert channels_of(switches) == [BEIJING, SINGAPORE]
    assert told in firing(), "Beijing is still out"
