"""The rings of the fair queue as rows: read at the beginning of a scan's transaction, written at its end."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import connection

from dispatch.fairness import CLASS_KEYS, CLASS_OF_KEY, FairQueue, Member, Ring, TenantHeads, come_back
from dispatch.models import ClassTurn
from dispatch.queue_heads import WaitingLine

TENANT_LIMIT = "tenant_limit"
type Tenant = tuple[str, int]  # service class, customer

_WRITE_TENANTS = """
UPDATE dispatch_tenantqueue AS tenant
SET deficit_ms = now_is.deficit_ms, lap = now_is.lap, is_new = now_is.is_new, returned = false,
    last_end_user = now_is.last_end_user, held_back = now_is.held_back,
    held_back_at = CASE WHEN now_is.held_back = '' THEN NULL
                        ELSE coalesce(tenant.held_back_at, %(now)s) END
FROM unnest(%(ids)s::bigint[], %(deficits)s::bigint[], %(laps)s::bigint[], %(new)s::boolean[],
            %(users)s::text[], %(held)s::text[])
     AS now_is(id, deficit_ms, lap, is_new, last_end_user, held_back)
WHERE tenant.id = now_is.id"""

# Not where something arrived since the line was read: it may stand before what was read.
_WRITE_WATERMARKS = """
UPDATE dispatch_line AS line SET watermark_at = read.watermark_at
FROM unnest(%(ids)s::bigint[], %(arrivals)s::bigint[], %(watermarks)s::timestamptz[])
     AS read(id, arrivals, watermark_at)
WHERE line.id = read.id AND line.arrivals = read.arrivals"""


@dataclass
class QueueState:
    """The tenants that have a line in a lot where somebody could start, as rings and as rows."""

    queue: FairQueue
    lines: dict[Tenant, list[WaitingLine]]
    heads: dict[Tenant, TenantHeads]
    turns: dict[str, ClassTurn]
    held_back: dict[Tenant, str] = field(default_factory=dict)  # why, of those that were passed by
    watermarks: dict[int, datetime] = field(default_factory=dict)  # found, by line


def read_state(lines: Iterable[WaitingLine]) -> QueueState:
    by_tenant: dict[Tenant, list[WaitingLine]] = defaultdict(list)
    for line in lines:
        by_tenant[line.service_class, line.customer_id].append(line)
    turns = _class_turns()
    members: dict[str, list[Member]] = {name: [] for name in CLASS_KEYS}
    for (service_class, _), of_tenant in by_tenant.items():
        members[service_class].append(_member(of_tenant[0], turns[service_class].lap))
    rings = {name: Ring(members[name], turns[name].tenant_turn, turns[name].lap) for name in CLASS_KEYS}
    heads = {tenant: TenantHeads(lines[0].last_end_user) for tenant, lines in by_tenant.items()}
    return QueueState(FairQueue(_classes(turns), rings), dict(by_tenant), heads, turns)


def _member(line: WaitingLine, lap: int) -> Member:
    member = Member(line.customer_id, line.weight, line.deficit_ms, line.is_new)
    return come_back(member, lap - line.lap) if line.returned else member


def _class_turns() -> dict[str, ClassTurn]:
    turns = {turn.service_class: turn for turn in ClassTurn.objects.all()}
    if len(turns) < len(CLASS_KEYS):
        missing = [ClassTurn(service_class=name) for name in CLASS_KEYS if name not in turns]
        ClassTurn.objects.bulk_create(missing, ignore_conflicts=True)
        turns = {turn.service_class: turn for turn in ClassTurn.objects.all()}
    return turns


def _classes(turns: Mapping[str, ClassTurn]) -> Ring:
    at_turn = next((CLASS_KEYS[name] for name, turn in turns.items() if turn.has_turn), 0)
    weights = settings.QUEUE_CLASS_WEIGHTS
    return Ring(
        (Member(CLASS_KEYS[name], weights[name], turn.deficit_ms) for name, turn in turns.items()), at_turn
    )


def write_state(state: QueueState, now: datetime) -> None:
    """The caller has locked the lines and tenants that changed (`queue.lock_lines`)."""
    _write_tenants(state, now)
    _write_watermarks(state)
    _write_turns(state)


def changed_tenants(state: QueueState) -> list[Tenant]:
    """Whose row is no longer what was read."""
    return [tenant for tenant, lines in state.lines.items() if _has_changed(state, tenant, lines[0])]


def _has_changed(state: QueueState, tenant: Tenant, read: WaitingLine) -> bool:
    member = _member_of(state, tenant)
    return (
        read.returned
        or (member.deficit_ms, member.is_new) != (read.deficit_ms, read.is_new)
        or state.heads[tenant].last_end_user != read.last_end_user
        or state.held_back.get(tenant, "") != read.held_back
    )


def _member_of(state: QueueState, tenant: Tenant) -> Member:
    service_class, customer = tenant
    return state.queue.tenants[service_class].members[customer]


def _write_tenants(state: QueueState, now: datetime) -> None:
    changed = changed_tenants(state)
    if not changed:
        return
    members = [_member_of(state, tenant) for tenant in changed]
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE_TENANTS,
            {
                "now": now,
                "ids": [state.lines[tenant][0].tenant_id for tenant in changed],
                "deficits": [member.deficit_ms for member in members],
                "laps": [state.queue.tenants[service_class].lap for service_class, _ in changed],
                "new": [member.is_new for member in members],
                "users": [state.heads[tenant].last_end_user for tenant in changed],
                "held": [state.held_back.get(tenant, "") for tenant in changed],
            },
        )


def _write_watermarks(state: QueueState) -> None:
    moved = [
        (line.line_id, line.arrivals, state.watermarks[line.line_id])
        for lines in state.lines.values()
        for line in lines
        if state.watermarks.get(line.line_id, line.watermark_at) > line.watermark_at
    ]
    if moved:
        ids, arrivals, watermarks = map(list, zip(*moved, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(_WRITE_WATERMARKS, {"ids": ids, "arrivals": arrivals, "watermarks": watermarks})


def _write_turns(state: QueueState) -> None:
    at_turn = CLASS_OF_KEY.get(state.queue.classes.turn)
    changed = []
    for name, turn in state.turns.items():
        ring, member = state.queue.tenants[name], state.queue.classes.members[CLASS_KEYS[name]]
        values = (member.deficit_ms, name == at_turn, ring.turn, ring.lap)
        if values != (turn.deficit_ms, turn.has_turn, turn.tenant_turn, turn.lap):
            turn.deficit_ms, turn.has_turn, turn.tenant_turn, turn.lap = values
            changed.append(turn)
    ClassTurn.objects.bulk_update(changed, ["deficit_ms", "has_turn", "tenant_turn", "lap"])
