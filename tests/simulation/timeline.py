"""The recorded changes of a life, one after the other: what must hold at every instant and of every step.

The tables of moves are copied when this module is read, so that a bug planted in them is seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dispatch.lifecycle import ATTEMPT_MOVES, FINAL_JOB_STATES, JOB_MOVES

_ATTEMPT_MOVES = {str(state): frozenset(map(str, targets)) for state, targets in ATTEMPT_MOVES.items()}
_JOB_MOVES = {str(state): frozenset(map(str, targets)) for state, targets in JOB_MOVES.items()}
_FINAL_JOBS = frozenset(map(str, FINAL_JOB_STATES))
_WITHOUT_SLOT = ("generated", "fetching", "succeeded", "failed", "cancelled")
_LIMITS = (
    ("catalog_channel", "channel_id", "concurrency"),
    ("catalog_supply", "supply_id", "concurrency"),
    ("catalog_capacitygroup", "group_id", "capacity"),
)
_PLACES = (("catalog_channel", "channel_id"), ("catalog_supply", "supply_id"))
_HEALTH = (("health_channelhealth", "channel_id"), ("health_supplyhealth", "supply_id"))

type Told = Iterator[tuple[str, str]]
type Row = Mapping[str, Any]


@dataclass
class Timeline:
    """`record` in the order of the changes; `tasks`: between which of them each noted task ran."""

    record: Sequence[Row]
    tasks: Sequence[tuple[int, int]]
    rows: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    earlier: dict[tuple[str, int], list[tuple[int, Row]]] = field(default_factory=dict)

    def violations(self) -> Told:
        moved = _moves_by_transaction(self.record)
        for change in self.record:
            kind, old, new = change["kind"], change["old"], change["new"]
            match kind:
                case "dispatch_job":
                    yield from self._of_job(old, new)
                case "dispatch_attempt":
                    yield from self._of_attempt(change, old, new)
                case "dispatch_capacitylease":
                    yield from self._of_lease(change, old, new, moved)
            self._keep(change)

    def _keep(self, change: Row) -> None:
        key = (change["kind"], change["id"])
        if change["old"] is not None:
            self.earlier.setdefault(key, []).append((change["seq"], change["old"]))
        self.rows[key] = change["new"]

    def _of_job(self, old: Row | None, new: Row) -> Told:
        if old is None or old["state"] == new["state"]:
            return
        if new["state"] not in _JOB_MOVES[old["state"]]:
            yield "I10 a job moves along its table", f"{new['public_id']}: {old['state']} to {new['state']}"
        yield from _versions(old, new)

    def _of_attempt(self, change: Row, old: Row | None, new: Row) -> Told:
        if old is None:
            yield from self._begun(change, new)
            return
        if old["state"] != new["state"] and new["state"] not in _ATTEMPT_MOVES[old["state"]]:
            yield (
                "I10 an attempt moves along its table",
                f"{new['public_id']}: {old['state']} to {new['state']}",
            )
        yield from _versions(old, new)
        if old["state"] == "ready" and new["state"] == "submitting":
            yield from self._let_go(change, new)
        if old["body_sent_at"] is None and new["body_sent_at"] is not None:
            yield from self._allowed_to_send(change["id"], new)

    def _let_go(self, change: Row, new: Row) -> Told:
        """Whoever switches a place off while the last guard looks may be seen by it or not."""
        for kind, column in _PLACES:
            states = [row["state"] for row in self._during(change["seq"], (kind, new[column]))]
            if states and all(state == "disabled" for state in states):
                yield f"I17 nothing is sent to a disabled {kind.partition('_')[2]}", new["public_id"]

    def _begun(self, change: Row, new: Row) -> Told:
        job = self.rows.get(("dispatch_job", new["job_id"]), {})
        if job.get("cancel_requested_at") is not None or job.get("state") in _FINAL_JOBS:
            yield "I23 no attempt begins after the wish to cancel or the end", new["public_id"]
        for kind, column in _HEALTH:
            states = [row["state"] for row in self._during(change["seq"], (kind, new[column]))]
            if states and all(state == "circuit_open" for state in states):
                yield "I16 an open circuit takes nothing", f"{new['public_id']}: {kind}"

    def _allowed_to_send(self, attempt_id: int, new: Row) -> Told:
        lease = self._lease_of(attempt_id)
        if new["state"] != "submitting":
            yield "I14 only who holds the attempt sends", f"{new['public_id']} was {new['state']}"
        elif lease is None or _time(lease["expires_at"]) <= _time(new["body_sent_at"]):
            yield "I14 only who holds the lease sends", f"{new['public_id']}: its lease had ended"

    def _lease_of(self, attempt_id: int) -> Row | None:
        return next(
            (
                row
                for (kind, _), row in self.rows.items()
                if kind == "dispatch_capacitylease"
                and row["attempt_id"] == attempt_id
                and row["released_at"] is None
            ),
            None,
        )

    def _of_lease(self, change: Row, old: Row | None, new: Row, moved: Mapping[tuple[int, int], str]) -> Told:
        if old is None:
            yield from self._granted(change, new)
            return
        attempt = self.rows.get(("dispatch_attempt", new["attempt_id"]), {})
        if new["fence"] < old["fence"]:
            yield "I14 a fence only grows", f"{attempt.get('public_id')}: {old['fence']} to {new['fence']}"
        if old["released_at"] is None and new["released_at"] is not None:
            state = moved.get((change["xid"], new["attempt_id"]), attempt.get("state", ""))
            if state not in (*_WITHOUT_SLOT, "abandoned"):
                yield (
                    "I6 a slot is released with the attempt's end",
                    f"{attempt.get('public_id')} was {state}",
                )
        renewed = new["renewed_at"] != old["renewed_at"] and new["fence"] == old["fence"]
        sending = attempt.get("state") == "submitting" and (change["xid"], new["attempt_id"]) not in moved
        if renewed and sending and _time(new["renewed_at"]) >= _time(old["expires_at"]):
            yield "I14 a lease that ran out is not renewed while sending", f"{attempt.get('public_id')}"

    def _granted(self, change: Row, new: Row) -> Told:
        for kind, column, limit in _LIMITS:
            subject = new[column]
            if subject is None:
                continue
            capacities = [row[limit] for row in self._during(change["seq"], (kind, subject))]
            taken = 1 + sum(
                1
                for (of, number), row in self.rows.items()
                if of == "dispatch_capacitylease"
                and number != change["id"]
                and row[column] == subject
                and row["released_at"] is None
            )
            if capacities and taken > max(capacities):
                yield (
                    "I5 never more slots taken than there are",
                    f"{kind} {subject}: {taken} of {max(capacities)}",
                )

    def _during(self, seq: int, key: tuple[str, int]) -> list[Row]:
        """The row as it was at any time since the task began that made the change `seq`: what it decided by
        may have changed meanwhile."""
        if key not in self.rows:
            return []
        began = min((begin for begin, end in self.tasks if begin < seq <= end), default=seq)
        return [self.rows[key], *(old for at, old in self.earlier.get(key, []) if at > began)]


def _versions(old: Row, new: Row) -> Told:
    stepped = new["state_version"] - old["state_version"]
    if stepped not in (0, 1) or (stepped == 0 and old["state"] != new["state"]):
        yield (
            "I14 no row is changed by who saw an earlier version",
            f"{new['public_id']}: version {old['state_version']} to {new['state_version']}",
        )


def _moves_by_transaction(record: Sequence[Row]) -> dict[tuple[int, int], str]:
    """The state that an attempt reached in a transaction, whichever of its rows was written first."""
    return {
        (change["xid"], change["id"]): change["new"]["state"]
        for change in record
        if change["kind"] == "dispatch_attempt"
        and (change["old"] is None or change["old"]["state"] != change["new"]["state"])
    }


def _time(written: str) -> datetime:
    return datetime.fromisoformat(written)
