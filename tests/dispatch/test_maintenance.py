"""Maintenance of a channel through the whole engine; the items are those of the console's checklist."""

from datetime import timedelta

from catalog.audit import Actor
from catalog.models import AuditEntry, Channel
from dispatch.maintenance import Wanted
from dispatch.models import Attempt, Maintenance
from dispatch.queries.impact import impact_of
from dispatch.services.dispatch_scan import scan
from dispatch.services.end_maintenance import end_maintenance
from dispatch.services.keep_house import CHORES
from dispatch.services.start_maintenance import start_maintenance
from dispatch.services.watch_maintenance import watch_maintenance
from health.models import Alert, ChannelHealth, HealthEvent
from tests.engine import Engine

WANG = Actor("wang.l", "console")
BEIJING = "ark-beijing"


def started(engine: Engine, *, mode: str = "drain", at_end: str = "probe") -> Maintenance:
    """For an hour, with every tier ticked that loses its last supply."""
    channel = Channel.objects.get(slug=BEIJING)
    wanted = Wanted(mode, engine.now + timedelta(hours=1), at_end, "key rotation")
    supplies = list(channel.supplies.values_list("slug", flat=True))
    last = {loss.key for loss in impact_of(supplies, engine.now) if loss.is_last}
    assert "seedance-2.0-933:exact" in last
    told = start_maintenance(
        channel.pk, wanted, last - {"seedance-2.0-933:exact"}, actor=WANG, now=engine.now
    )
    assert told == {"losses": "not_ticked"}
    maintenance = start_maintenance(channel.pk, wanted, last, actor=WANG, now=engine.now)
    assert isinstance(maintenance, Maintenance), maintenance
    again = start_maintenance(channel.pk, wanted, last, actor=WANG, now=engine.now)
    assert again == {"channel": "out_already"}
    return maintenance


def circuit() -> str:
    return ChannelHealth.objects.get(channel__slug=BEIJING).state


def test_c2_what_runs_finishes_and_nothing_new_starts_while_a_channel_drains(engine: Engine) -> None:
    running = engine.job()
    engine.drain()
    assert Attempt.objects.get(job=running).channel.slug == BEIJING
    started(engine)
    later = engine.job()
    engine.finish(running)
    assert running.state == "succeeded"
    assert not Attempt.objects.filter(job=later, channel__slug=BEIJING).exists()
    assert not Attempt.objects.filter(channel__slug=BEIJING, finished_at=None).exists(), "none is left"
    assert (Channel.objects.get(slug=BEIJING).state, circuit()) == ("draining", "disabled")
    entry = AuditEntry.objects.get(action="start maintenance")
    assert entry.after
    assert (entry.actor, entry.after["reason"], entry.after["mode"]) == ("wang.l", "key rotation", "drain")


def test_stopping_gives_back_what_was_selected_and_not_sent(engine: Engine) -> None:
    job = engine.job()
    scan(lambda: engine.now)
    assert engine.attempts(job) == ["ready"]
    started(engine, mode="stop")
    engine.drain()
    attempt = Attempt.objects.get(job=job, number=1)
    assert (attempt.state, attempt.error_code) == ("failed", "not_created")
    assert len(engine.simulator.world.log()["posts"]) <= 1, "another supply at most"


def test_c3_after_its_end_a_channel_climbs_from_probing_over_each_step_to_healthy(engine: Engine) -> None:
    maintenance = started(engine)
    engine.step()
    assert end_maintenance(maintenance.pk, actor=WANG, now=engine.now)
    assert not end_maintenance(maintenance.pk, actor=WANG, now=engine.now), "once"
    assert (Channel.objects.get(slug=BEIJING).state, circuit()) == ("enabled", "probing")
    while circuit() != "healthy":
        engine.finish(engine.job())
    events = HealthEvent.objects.filter(subject="channel", epoch=1).order_by("id")
    steps = list(events.values_list("to_state", "recovery_successes"))
    assert steps == [
        ("probing", 0),
        ("probing", 1),
        ("recovering", 2),
        ("recovering", 3),
        ("recovering", 4),
        ("healthy", 0),
    ]


def test_c5_a_warning_comes_15_minutes_before_the_end_and_nothing_becomes_healthy_by_itself(
    engine: Engine,
) -> None:
    maintenance = started(engine)
    warned = Alert.objects.filter(code="maintenance_ending")
    watch_maintenance(maintenance.until_at - timedelta(minutes=16))
    assert not warned.exists()
    watch_maintenance(maintenance.until_at - timedelta(minutes=15))
    alert = warned.get()
    assert (alert.severity, alert.subject) == ("warning", "channel:ark-beijing")
    watch_maintenance(maintenance.until_at - timedelta(minutes=1))
    assert circuit() == "disabled"
    watch_maintenance(maintenance.until_at)
    assert circuit() == "probing", "as was chosen at the start"
    alert.refresh_from_db()
    maintenance.refresh_from_db()
    assert (alert.resolved_why, maintenance.ended_by) == ("clock ended it", "clock")


def test_c5_a_channel_stays_off_past_its_end_where_it_was_so_chosen(engine: Engine) -> None:
    maintenance = started(engine, at_end="stay_off")
    watch_maintenance(maintenance.until_at + timedelta(minutes=5))
    maintenance.refresh_from_db()
    assert (maintenance.ended_at, circuit()) == (None, "disabled")
    assert Alert.objects.unresolved().filter(code="maintenance_ending").exists()
    assert watch_maintenance in CHORES
