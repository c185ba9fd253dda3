"""An installation at work: taken slots, jobs that wait, unknown outcomes, a channel in maintenance."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from catalog.audit import Actor
from catalog.models import CapacityGroup, Channel, PublicModel, Supply
from dispatch.maintenance import Wanted
from dispatch.models import Attempt, Bell, Job, Maintenance
from dispatch.queries.impact import impact_of
from dispatch.services.start_maintenance import start_maintenance
from dispatch.services.take_attempt import take_attempt
from health.models import HealthEvent
from tests.factories import (
    AttemptFactory,
    CapacityGroupFactory,
    CapacityLeaseFactory,
    JobFactory,
    ProviderEventFactory,
    ProviderJobFactory,
    SelectionRoundFactory,
)
from tests.models_world import make_models_world

WANG = Actor("wang.l", "console")
PARTS = {  # of pages, that are fetched by themselves
    "overview_charts": "/console/overview/charts/",
    "overview_changes": "/console/overview/changes/",
    "model_picks": "/console/models/vid-hd-5s/picks/",
    "publication": "/console/models/vid-hd-5s/publication/",
    "supply_seen": "/console/supplies/kestrel-hd/seen/",
    "supply_costs": "/console/supplies/kestrel-hd/costs/",
}


@dataclass
class OperationsWorld:
    model: PublicModel
    kestrel: Supply
    group: CapacityGroup
    uncertain: Attempt  # nobody is on it
    taken: Attempt  # wang.l is
    lost: Attempt  # accepted, and its outcome unknown since
    maintenance: Maintenance

    def pages(self) -> list[str]:
        desk = f"/console/uncertain/{self.uncertain.public_id}/"
        return [
            "/console/dispatch/",
            "/console/uncertain/",
            desk,
            f"{desk}decide/?decision=absent&evidence=not+in+their+console",
            f"/console/uncertain/{self.taken.public_id}/",
            f"/console/uncertain/{self.lost.public_id}/",
            "/console/channels/",
            "/console/channels/heron-main/",
            "/console/channels/osprey-main/",
            "/console/channels/osprey-main/maintenance/",
            "/console/channels/kestrel-main/maintenance/",
            "/console/health/",
            "/console/health/events/",
            f"/console/health/events/{HealthEvent.objects.latest('pk').public_id}/",
            "/console/capacity/",
            f"/console/capacity/group/{self.group.public_id}/",
            "/console/supplies/",
            "/console/supplies/kestrel-hd/",
            "/console/supplies/kestrel-hd/switch/",
            *PARTS.values(),
        ]


def make_operations_world(now: datetime | None = None) -> OperationsWorld:
    now = now or timezone.now()
    model = make_models_world().model
    Channel.objects.update(credential='{"key": "lost"}')  # nobody is asked: it can't be opened
    beat(now)
    kestrel = Supply.objects.select_related("channel").get(slug="kestrel-hd")
    group = CapacityGroupFactory(account="kestrel", capacity=9)
    Channel.objects.filter(pk=kestrel.channel_id).update(capacity_group=group)
    kestrel.channel.capacity_group = group
    ago = now - timedelta(minutes=8)
    for state in ("running", "running", "accepted", "ready"):
        held(attempt(model, kestrel, state, ago))
    uncertain = unknown(model, kestrel, ago - timedelta(minutes=3), "7300000")
    taken = unknown(model, kestrel, ago, "1200000")
    take_attempt(taken, WANG, now)
    lost = held(attempt(model, kestrel, "outcome_uncertain", ago, accepted_at=ago), "unknown")
    ProviderJobFactory(attempt=lost, status="running")
    ended(model, kestrel, now)
    waits(model, "capacity_full", 3, ago)
    waits(model, "channel_circuit_open", 2, ago)
    return OperationsWorld(model, kestrel, group, uncertain, taken, lost, in_maintenance(now))


def beat(now: datetime) -> None:
    """The dispatcher lives."""
    Bell.objects.update_or_create(name="scan", defaults={"rung_at": now, "answered_at": now})


def attempt(model: PublicModel, supply: Supply, state: str, at: datetime, **values: Any) -> Attempt:
    job = JobFactory(public_model=model, state="running", created_at=at)
    return AttemptFactory(job=job, supply=supply, state=state, **values)


def held(attempt: Attempt, state: str = "live") -> Attempt:
    CapacityLeaseFactory(attempt=attempt, state=state)
    return attempt


def ended(model: PublicModel, supply: Supply, now: datetime) -> None:
    """A day with a bad hour in its middle."""
    for hours in (1, 3, 6, 9, 12, 12, 12, 15, 20):
        at, bad = now - timedelta(hours=hours), hours == 12
        done = {"state": "failed", "error_category": "supply", "error_code": "internal_retryable"}
        job = JobFactory(public_model=model, state="failed", created_at=at)
        AttemptFactory(
            job=job,
            supply=supply,
            finished_at=at,
            request_started_at=at - timedelta(minutes=2),
            generated_at=None if bad else at,
            **(done if bad else {"state": "succeeded"}),
        )


def unknown(model: PublicModel, supply: Supply, at: datetime, quote_micros: str) -> Attempt:
    """Sent, and the answer lost."""
    found = attempt(
        model,
        supply,
        "submission_uncertain",
        at,
        quote_micros=int(quote_micros),
        request_started_at=at + timedelta(seconds=3),
        body_sent_at=at + timedelta(seconds=4),
        execution_deadline_at=at + timedelta(hours=1),
        uncertain_deadline_at=at + timedelta(minutes=30),
        transport_stage="body",
        recovery={"tries": 2},
    )
    ProviderEventFactory(attempt=found, outcome="unknown", raw={"stage": "reading"})
    ProviderEventFactory(
        attempt=found,
        kind="recover",
        outcome="cannottell",
        raw={"reason": "the listing was cut off"},
        at=at + timedelta(seconds=30),
    )
    return held(found, "unknown")


def waits(model: PublicModel, reason: str, number: int, since: datetime, outcome: str = "") -> list[Job]:
    """Jobs that wait by themselves, as their last look left them."""
    outcome = outcome or "no_candidate"
    found = []
    for _ in range(number):
        job = JobFactory(
            public_model=model,
            created_at=since,
            next_action_at=since,
            waiting={"outcome": outcome, "signature": reason},
        )
        candidates = {"kestrel-hd": {"reason": reason}}
        SelectionRoundFactory(job=job, snapshot={"decision": {"candidates": candidates}}, outcome=outcome)
        found.append(job)
    return found


def in_maintenance(now: datetime, channel: str = "osprey-main") -> Maintenance:
    row = Channel.objects.get(slug=channel)
    wanted = Wanted("drain", now + timedelta(hours=2), "probe", "key rotation")
    last = {loss.key for loss in impact_of(list(row.supplies.values_list("slug", flat=True)), now)}
    started = start_maintenance(row.pk, wanted, last, actor=WANG, now=now)
    assert isinstance(started, Maintenance), started
    return started


def operations_addresses() -> dict[str, str]:
    """Of every page of operations, by the name of its URL; makes the world."""
    world = make_operations_world()
    desk = f"/console/uncertain/{world.uncertain.public_id}/"
    return {
        **PARTS,
        "dispatch": "/console/dispatch/",
        "uncertain": "/console/uncertain/",
        "uncertain_attempt": desk,
        "take_attempt": f"{desk}take/",
        "query_attempt": f"{desk}query/",
        "decide_attempt": f"{desk}decide/?decision=absent&evidence=looked",
        "decide_attempt_now": f"{desk}decide/now/?decision=absent",
        "supplies": "/console/supplies/",
        "supply": "/console/supplies/kestrel-hd/",
        "switch_supply": "/console/supplies/kestrel-hd/switch/",
        "switch_supply_now": "/console/supplies/kestrel-hd/switch/now/",
        "channels": "/console/channels/",
        "channel": "/console/channels/kestrel-main/",
        "maintenance": "/console/channels/kestrel-main/maintenance/",
        "start_maintenance": "/console/channels/kestrel-main/maintenance/start/",
        "end_maintenance": "/console/channels/kestrel-main/maintenance/end/",
        "health": "/console/health/",
        "health_events": "/console/health/events/",
        "health_event": f"/console/health/events/{HealthEvent.objects.latest('pk').public_id}/",
        "capacity": "/console/capacity/",
        "limit": f"/console/capacity/group/{world.group.public_id}/",
        "set_limit": f"/console/capacity/group/{world.group.public_id}/set/",
    }
