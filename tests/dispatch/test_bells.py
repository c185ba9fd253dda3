"""What the pulse rings for, and what operators are told of the engine itself."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from django_q.models import OrmQ

from catalog.models import Channel
from catalog.revision import bump_revision
from dispatch import pulse, tasks
from dispatch.models import Job
from dispatch.outputs.storage import MediaStore
from dispatch.services import raise_alerts
from health.alerts import raise_alert
from health.models import Alert, AlertDelivery
from tests.alert_receiver import Receiver, signature_of
from tests.engine import IMAGE, VIDEO, Engine


def open_codes() -> set[str]:
    return set(Alert.objects.unresolved().values_list("code", flat=True))


def beat(engine: Engine, seconds: float) -> None:
    """Time passes and the pulse beats, but nobody works."""
    engine.now += timedelta(seconds=seconds)
    pulse.beat(engine.now)


def test_a_scan_that_nobody_answers_for_ten_seconds_is_told_until_somebody_does(engine: Engine) -> None:
    engine.step()
    engine.job(VIDEO)
    beat(engine, 1)
    beat(engine, 9)
    assert open_codes() == set()
    beat(engine, 1)
    assert Alert.objects.get(code="no_dispatcher").severity == "critical"
    beat(engine, 25)
    assert open_codes() == {"no_dispatcher"}, "ringing again is no answer"
    beat(engine, 10)
    assert Alert.objects.get(code="no_dispatcher").count == 2
    engine.drain()
    beat(engine, 1)
    assert open_codes() == set()


def test_a_pulse_that_begins_again_after_an_hour_raises_nothing(engine: Engine) -> None:
    engine.step()
    assert "scan" in pulse.beat(engine.now + timedelta(seconds=pulse.SIGN_OF_LIFE_EVERY_S))
    OrmQ.objects.all().delete()
    beat(engine, 3600)
    engine.drain()
    beat(engine, 1)
    assert not Alert.objects.exists()


def test_an_alert_reaches_the_operators_webhook_signed(engine: Engine, receiver: Receiver) -> None:
    engine.simulator.script({"accounts": {"beijing-account-key": {"state": "revoked"}}})
    job = engine.job(IMAGE)
    engine.finish(job)
    engine.step(3)
    headers, content = receiver.received[0]
    told = receiver.told()[0]["data"]
    opened = Alert.objects.get(code="channel_circuit_open")
    assert (told["id"], told["code"]) == (opened.public_id, "channel_circuit_open")
    assert headers["webhook-signature"] == signature_of(headers, content)
    engine.run(60, step_s=20)
    assert len(receiver.received) == 1
    assert AlertDelivery.objects.get().state == "delivered"


def test_unknown_slots_that_are_full_are_told_until_there_is_room(engine: Engine) -> None:
    Channel.objects.update(unknown_limit=1)
    bump_revision()
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}}
    engine.simulator.script({"rules": [rule]})
    lost = engine.job(VIDEO)
    engine.drain()
    assert engine.attempts(lost) == ["submission_uncertain"]
    next_one = engine.job(VIDEO)
    engine.drain()
    assert engine.attempts(next_one) == []
    told = Alert.objects.get(code="unknown_slots_full")
    assert (told.severity, told.details) == ("critical", {"held": 1, "limit": 1})
    assert told.subject == "channel:ark-beijing"
    engine.finish(lost, next_one)
    assert (lost.state, next_one.state) == ("succeeded", "succeeded")
    told.refresh_from_db()
    assert told.resolved_why == "fewer outcomes are unknown"


def test_unknown_slots_are_looked_at_too_while_no_job_waits(engine: Engine) -> None:
    Channel.objects.update(unknown_limit=1)
    bump_revision()
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}}
    engine.simulator.script({"rules": [rule]})
    lost = engine.job(VIDEO)
    engine.drain()
    tasks.housekeeping()
    assert "unknown_slots_full" in open_codes()
    engine.finish(lost)
    tasks.housekeeping()
    assert "unknown_slots_full" not in open_codes()


def test_what_selections_told_of_a_model_ends_with_the_next_that_is_without_it(engine: Engine) -> None:
    Channel.objects.filter(slug="ark-beijing").update(state="disabled")
    bump_revision()
    engine.job(VIDEO)
    engine.drain()
    assert open_codes() == {"exact_unavailable"}
    Channel.objects.update(state="enabled")
    bump_revision()
    engine.job(VIDEO)
    engine.drain()
    assert Alert.objects.get().resolved_why == "the model's next selection was without it"


def test_what_selections_told_of_a_model_ends_after_a_quarter_of_an_hour_without_one(engine: Engine) -> None:
    for code in raise_alerts.OF_SELECTION:
        raise_alert(code, subject="model:m", dedupe_key=code, details={}, now=engine.now)
    raise_alert("output_lost", subject="attempt:a", dedupe_key="a", details={}, now=engine.now)
    engine.step(899)
    assert open_codes() == {*raise_alerts.OF_SELECTION, "output_lost"}
    engine.step(61)
    assert open_codes() == {"output_lost"}


def test_selections_without_alerts_ask_once_for_what_has_ended(
    engine: Engine, django_assert_num_queries: Any
) -> None:
    jobs = Job.objects.select_related("public_model").filter(
        pk__in=[engine.job(VIDEO).pk, engine.job(IMAGE).pk]
    )
    last: list[tuple[Job, tuple[str, ...]]] = [(job, ()) for job in jobs]
    with django_assert_num_queries(1):
        raise_alerts.of_selections(last, engine.now)


def test_unfinished_parts_are_swept_after_a_day(engine: Engine, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_DIR = tmp_path
    incoming = MediaStore(tmp_path).incoming()
    ages_h = {"fresh": 23, "stale": 25}
    for name, hours in ages_h.items():
        written = (engine.now - timedelta(hours=hours)).timestamp()
        (incoming / name).write_bytes(b"half a file")
        os.utime(incoming / name, (written, written))
    tasks.sweep_incoming()
    assert [part.name for part in incoming.iterdir()] == ["fresh"]
    assert pulse.BELLS["sweep_incoming"].every_s == 3600
