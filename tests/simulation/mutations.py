"""Twelve deliberate bugs, planted one at a time by patching the product from outside.

Each must be found within two thousand lives, or the adversary or the checker is too weak."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch

from django.db import transaction
from django.db.models import F

from billing import ledger
from billing.models import CreditEntry, Customer
from catalog.providers.types import Found, ProviderError, Rejected, Unknown
from catalog.providers.volcengine_ark import VolcengineArk
from dispatch import capacity, lifecycle, repository
from dispatch.capacity import SlotChange
from dispatch.lifecycle import AttemptState, JobState, Slot
from dispatch.models import Attempt, CapacityLease, Job, Occupancy
from dispatch.services import advance as advancing
from dispatch.services import record_poll, recover, submit
from tests.simulation.installation import Installation
from tests.simulation.mutation_names import NAMES

A = AttemptState
type Mutation = Callable[[Installation], Any]


@contextmanager
def _all(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


def repost_after_timeout(_: Installation) -> Any:
    send = VolcengineArk.submit

    def twice(self: Any, *args: Any, **values: Any) -> Any:
        outcome = send(self, *args, **values)
        lost = isinstance(outcome, Unknown) and outcome.stage in ("awaiting", "body")
        return send(self, *args, **values) if lost else outcome

    return patch.object(VolcengineArk, "submit", twice)


def release_before_settle(_: Installation) -> Any:
    record = record_poll.record_polls

    def early(results: Mapping[int, Any], now: datetime, *claimed: Any) -> None:
        ended = [pk for pk, told in results.items() if getattr(told, "status", "") in ("succeeded", "failed")]
        if ended:
            with transaction.atomic():
                repository.locked_attempts(ended)
                capacity.change_slots([SlotChange(pk, Slot.RELEASED, "completed") for pk in ended], now)
        record(results, now, *claimed)

    return _all(
        patch("dispatch.services.follow.record_polls", early),
        patch.object(record_poll, "record_polls", early),
    )


def release_twice(_: Installation) -> Any:
    """Each release counts its slot as free a second time."""
    change = capacity.change_slots

    def again(changes: Iterable[SlotChange], now: datetime) -> bool:
        asked = list(changes)
        freed = change(asked, now)
        released = [each.attempt_id for each in asked if each.slot is Slot.RELEASED]
        if released:
            for lease in CapacityLease.objects.filter(attempt__in=released):
                subjects = capacity.place_of(lease).subjects()
                capacity._count(Counter({(subject, "confirmed"): -1 for subject in subjects}))
        return freed

    return patch.object(capacity, "change_slots", again)


def ignore_the_epoch(_: Installation) -> Any:
    """Every guarded write goes through, whoever wrote meanwhile."""

    written = repository.update_each

    def unguarded(model: Any, rows: Any, versions: Any = None) -> set[int]:
        return written(model, rows)

    return _all(
        patch.object(repository, "update_each", unguarded),
        patch.object(advancing, "is_current", lambda *_: True),
    )


def count_then_insert(installation: Installation) -> Any:
    """Two dispatchers read the counts without a lock, and both find the last slot free."""

    def unlocked(condition: Any) -> dict[Any, Any]:
        rows = Occupancy.objects.filter(condition).order_by("kind", "subject_id")
        return {(row.kind, row.subject_id): row for row in rows}

    def without_lock(sql: str) -> str:
        return sql.replace("pg_advisory_xact_lock(", "greatest(")

    return _all(
        patch.object(capacity, "_locked", unlocked), patch.object(installation, "rewritten", without_lock)
    )


def adopt_a_late_result(_: Installation) -> Any:
    """What turns up after it was given up is taken for the job's result after all."""

    def adopted(attempt: Attempt, look_up: Any, clock: Callable[[], datetime]) -> None:
        result, now = look_up(attempt, clock()), clock()
        with transaction.atomic():
            if not isinstance(result, Found):
                Attempt.objects.filter(pk=attempt.pk).update(next_look_at=None)
                return
            Job.objects.filter(pk=attempt.job_id).update(
                state=JobState.RUNNING, finished_at=None, state_version=F("state_version") + 1
            )
            values = {"state": A.RUNNING, "finished_at": None, "accepted_at": now, "next_look_at": now}
            Attempt.objects.filter(pk=attempt.pk).update(**values, state_version=F("state_version") + 1)

    return patch.object(recover, "look_late", adopted)


def settle_twice(_: Installation) -> Any:
    """An entry is posted whether or not it stands already."""

    def posted(entries: Sequence[CreditEntry], now: datetime) -> None:
        for entry in entries:
            for _ in range(2 if entry.kind == CreditEntry.Kind.CHARGE else 1):
                entry.pk, entry.at = None, now
                entry.save(force_insert=True)
                owed = {"balance_micros": F("balance_micros") + entry.amount_micros}
                Customer.objects.filter(pk=entry.customer_id).update(**owed)

    return patch.object(ledger, "post", posted)


def renew_a_lost_lease(_: Installation) -> Any:
    """The worker that comes back helps itself to its lease before it looks whether it still has one."""
    allow = submit._allow

    def renewed(attempts: Sequence[Attempt], *args: Any) -> set[int]:
        now = args[-1]
        CapacityLease.objects.filter(attempt__in=attempts, released_at=None).update(
            renewed_at=now, expires_at=now + capacity.LEASE_TTL
        )
        return allow(attempts, *args)

    return patch.object(submit, "_allow", renewed)


def second_while_first_unknown(_: Installation) -> Any:
    send = VolcengineArk.submit

    def hopeful(self: Any, *args: Any, **values: Any) -> Any:
        outcome = send(self, *args, **values)
        if not isinstance(outcome, Unknown):
            return outcome
        error = ProviderError("capacity", "supply", True, "not_created", "surely it never arrived")
        return Rejected(error, outcome.stage)

    return patch.object(VolcengineArk, "submit", hopeful)


def absent_at_first_sight(_: Installation) -> Any:
    def at_once(attempt: Attempt, now: datetime) -> None:
        recover.fail_as_not_created(attempt, "absent from two complete listings", now)

    return patch.object(recover, "_record_absence", at_once)


def backwards(_: Installation) -> Any:
    """A later word of the provider counts, whatever it said before."""
    moves: Any = lifecycle.ATTEMPT_MOVES
    looser = {
        A.RUNNING: moves[A.RUNNING] | {A.PROVIDER_QUEUED, A.RUNNING},
        A.GENERATED: moves[A.GENERATED] | {A.FAILED, A.RUNNING, A.PROVIDER_QUEUED},
    }

    return _all(
        patch.dict(moves, looser),
        patch.object(record_poll, "_is_backwards", lambda *_: False),
        patch.object(record_poll, "_ahead", lambda attempt, to: None if attempt.state == to else to),
    )


def without_the_final_guard(_: Installation) -> Any:
    return patch.object(submit, "_guard", lambda *_: None)


_PLANTED = (
    repost_after_timeout,
    release_before_settle,
    release_twice,
    ignore_the_epoch,
    count_then_insert,
    adopt_a_late_result,
    settle_twice,
    renew_a_lost_lease,
    second_while_first_unknown,
    absent_at_first_sight,
    backwards,
    without_the_final_guard,
)
MUTATIONS: Mapping[str, Mutation] = dict(zip(NAMES, _PLANTED, strict=True))


def planted(name: str, installation: Installation) -> Any:
    """A context in which the product has that bug."""
    return MUTATIONS[name](installation)
