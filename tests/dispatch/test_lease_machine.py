"""Slots under any order of events, against a model that only knows which attempt should hold what.

The scan grants; workers, providers, operators and the reconciler do the rest, through the services that they
call. After each step the rows of leases, the counts and the recount agree with the model."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from catalog.audit import Actor
from catalog.models import CapacityGroup, Channel, Supply
from catalog.providers.errors import OVERLOADED, SAFETY_INPUT, error_of
from catalog.providers.types import (
    Absent,
    Accepted,
    CannotTell,
    Found,
    JobStatus,
    PollFailure,
    Rejected,
    Unknown,
)
from catalog.revision import bump_revision
from dispatch import capacity, live_catalogue, selection_facts
from dispatch.invariants import violations
from dispatch.models import Attempt, CapacityLease, Occupancy
from dispatch.moves import Move
from dispatch.services import dispatch_scan, reconcile, record_poll, record_submission, recover, submit
from dispatch.services.advance import advance
from dispatch.services.recount import recount
from health.models import Alert
from health.services.save_policy import save_policy
from tests.factories import (
    NOW,
    ApiKeyFactory,
    CapacityGroupFactory,
    ChannelFactory,
    JobFactory,
    PublicModelFactory,
    SupplyBindingFactory,
    SupplyFactory,
)

LIVE, UNKNOWN = "live", "unknown"
NEVER_OPENS = dict.fromkeys(
    ("degrade_after", "open_after", "rate_samples", "channel_network_open_after", "correlation_supplies"),
    10_000,
)
TOLD = ("told", ("running", "provider_queued", "404", "succeeded", "failed", "cancelled"))
STEPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ready": ("claimed", ("",)),
    "submitting": ("answered", ("accepted", "lost", "accepted", "full", "lost", "refused")),
    "submission_uncertain": ("looked_up", ("absent", "cannot tell", "found")),
    "accepted": TOLD,
    "provider_queued": TOLD,
    "running": TOLD,
    "outcome_uncertain": TOLD,
}
SLOTS = st.integers(1, 4)
ANY = st.integers(0, 1_000)
_WHOLE = Attempt.objects.select_related(
    "job", "channel", "supply", "policy", "provider_job", "cost_rule_version"
)


class Leases(RuleBasedStateMachine):
    """`holds`: by attempt, `live` or `unknown`; who is not in it holds nothing."""

    @initialize()
    def install(self) -> None:
        self.whole = transaction.atomic()
        self.whole.__enter__()
        live_catalogue._kept.clear()
        selection_facts._kept_statistics.clear()
        self.now, self.names = NOW, 0
        self.holds: dict[int, str] = {}
        save_policy(NEVER_OPENS, Actor("test", "test"), NOW)
        self.group = CapacityGroupFactory(capacity=4)
        self.model, self.key = PublicModelFactory(), ApiKeyFactory()
        for _ in range(2):
            channel = ChannelFactory(capacity_group=self.group, concurrency=3)
            supply = SupplyFactory(channel=channel, concurrency=2)
            SupplyBindingFactory(public_model=self.model, supply=supply)
        bump_revision()
        self.jobs_come_and_are_placed(4)
        for attempt in list(Attempt.objects.order_by("pk")[:3]):
            self.claimed(self.one_of(attempt), "")

    def teardown(self) -> None:
        if not hasattr(self, "whole"):
            return
        try:
            assert violations() == []
            assert not Alert.objects.filter(code="lease_drift").exists()
        finally:
            transaction.set_rollback(True)
            self.whole.__exit__(None, None, None)

    @rule(jobs=st.integers(1, 4))
    def jobs_come_and_are_placed(self, jobs: int) -> None:
        JobFactory.create_batch(
            jobs, public_model=self.model, api_key=self.key, created_at=self.now, next_action_at=self.now
        )
        self.scan()

    @rule()
    def scan(self) -> None:
        before, known = self.taken(), set(Attempt.objects.values_list("pk", flat=True))
        dispatch_scan.scan(lambda: self.now)
        for attempt in Attempt.objects.exclude(pk__in=known).select_related("channel"):
            self.holds[attempt.pk] = LIVE
            for subject in self.subjects(attempt):
                assert self.taken()[subject] <= max(self.slots(subject), before[subject]), subject
                assert before[subject] < self.slots(subject), "nothing new where nothing was free"

    @rule(subject=st.sampled_from(["group", "channel", "supply"]), slots=SLOTS)
    def an_operator_changes_capacity(self, subject: str, slots: int) -> None:
        """Fault 40: below what is in flight too; nothing in flight is ended by it."""
        if subject == "group":
            CapacityGroup.objects.filter(pk=self.group.pk).update(capacity=slots)
        else:
            rows: Any = {"channel": Channel, "supply": Supply}[subject]
            rows.objects.filter(pk=rows.objects.order_by("pk").values_list("pk", flat=True)[0]).update(
                concurrency=slots
            )
        bump_revision()

    @rule(fates=st.lists(st.tuples(ANY, ANY), min_size=2, max_size=5))
    def attempts_go_on(self, fates: list[tuple[int, int]]) -> None:
        for which, fate in fates:
            attempt = self.one(which, *STEPS)
            if attempt is not None:
                step, words = STEPS[attempt.state]
                getattr(self, step)(attempt, words[fate % len(words)])
                self.leases_and_counts_are_as_the_model_says()

    def claimed(self, attempt: Attempt, _: str) -> None:
        if not submit._claim([attempt.pk], self.now):
            self.freed(attempt)  # past its dispatch deadline
        else:
            assert self.lease(attempt).expires_at == self.now + capacity.LEASE_TTL

    def answered(self, attempt: Attempt, word: str) -> None:
        outcome: Any = {
            "accepted": Accepted(self.name()),
            "refused": Rejected(error_of(SAFETY_INPUT, "no"), "body"),
            "full": Rejected(error_of(OVERLOADED, "later"), "body"),
            "lost": Unknown("awaiting", "no answer"),
        }[word]
        Attempt.objects.filter(pk=attempt.pk).update(body_sent_at=self.now)
        record_submission.record_submission(attempt, outcome, self.now)
        if word in ("refused", "full"):
            self.freed(attempt)
        elif word == "lost":
            self.holds[attempt.pk] = UNKNOWN

    def told(self, attempt: Attempt, word: str) -> None:
        assert attempt.execution_deadline_at is not None
        late = self.now >= attempt.execution_deadline_at
        if word == "404":
            for _ in range(3):
                record_poll.record_poll(self.one_of(attempt), PollFailure(True, None, "404"), self.now)
        else:
            record_poll.record_poll(attempt, JobStatus(word, word), self.now)  # type: ignore[arg-type]
        if word in ("succeeded", "failed", "cancelled"):
            self.freed(attempt)
        elif late or word == "404":
            self.holds[attempt.pk] = UNKNOWN
        else:
            lease = self.lease(attempt)
            assert lease.state == UNKNOWN or lease.expires_at <= attempt.execution_deadline_at

    def looked_up(self, attempt: Attempt, word: str) -> None:
        results: Any = {"found": Found(self.name()), "absent": Absent(0), "cannot tell": CannotTell("?")}
        recover.record_recovery(attempt, results[word], self.now)
        state = self.state(attempt)
        if word == "found":
            assert state == "accepted"
            self.holds[attempt.pk] = LIVE
        elif state == "failed":
            assert word == "absent"
            self.freed(attempt)
        else:
            assert state in ("submission_uncertain", "abandoned")

    @rule(seconds=st.sampled_from([1, 20, 61, 400, 2_000]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(seconds=st.sampled_from([0, 61, 61, 2_000]))
    def the_reconciler_looks_twice(self, seconds: int) -> None:
        """Fault 47: the second look finds nothing that the first did not settle."""
        self.now += timedelta(seconds=seconds)
        held = {lease.attempt_id: lease for lease in self.held().select_related("attempt")}
        reconcile.reconcile(self.now)
        for attempt_id, lease in held.items():
            self.reconciled(attempt_id, lease)
        settled = list(self.held().order_by("pk").values())
        reconcile.reconcile(self.now)
        assert list(self.held().order_by("pk").values()) == settled

    def reconciled(self, attempt_id: int, before: CapacityLease) -> None:
        """By what the attempt was doing; an expired lease of one that may run is not free."""
        was, state = before.attempt.state, self.state(before.attempt)
        after = self.held().filter(attempt=attempt_id).first()
        expired = before.expires_at <= self.now
        if was == "abandoned":
            assert before.quarantine_until is not None
            assert (after is None) == (self.now >= before.quarantine_until)
            if after is None:
                assert CapacityLease.objects.get(pk=before.pk).outcome == "unproven"
                self.freed(before.attempt)
            return
        assert after is not None
        if not expired or state == "abandoned":
            return
        assert after.expires_at > self.now
        match was:
            case "ready":
                assert (state, after.fence) == ("ready", before.fence + 1)
            case "submitting":
                assert state == "submission_uncertain"
                self.holds[attempt_id] = UNKNOWN
            case _:
                assert (state, after.state) == (was, before.state)

    @rule(which=ANY)
    def somebody_with_an_old_fence_renews(self, which: int) -> None:
        lease = self.any_of(self.held(), which)
        if lease is not None:
            later = self.now + timedelta(hours=9)
            assert not capacity.renew({lease.attempt_id: lease.fence - 1}, self.now, later)
            assert not capacity.renew({lease.attempt_id: lease.fence + 1}, self.now, later)

    @rule(which=ANY)
    def a_release_whose_acknowledgement_was_lost_is_repeated(self, which: int) -> None:
        lease = self.any_of(CapacityLease.objects.exclude(released_at=None), which)
        if lease is None:
            return
        assert not capacity.release(lease.token, self.now, "failed")
        again = CapacityLease.objects.get(pk=lease.pk)
        assert (again.released_at, again.outcome) == (lease.released_at, lease.outcome)

    @rule(which=ANY)
    def a_move_whose_acknowledgement_was_lost_is_repeated(self, which: int) -> None:
        attempt = self.one(which, "accepted", "running")
        if attempt is None:
            return
        move = Move(attempt.pk, attempt.state_version, submit.A.GENERATED, {"generated_at": self.now})
        assert advance(move, self.now) is not None
        assert advance(move, self.now) is None
        assert CapacityLease.objects.get(attempt=attempt).outcome == "completed"
        self.freed(attempt)

    @invariant()
    def leases_and_counts_are_as_the_model_says(self) -> None:
        if not hasattr(self, "whole"):
            return
        assert dict(self.held().values_list("attempt", "state")) == self.holds
        expected: Counter[tuple[capacity.Subject, str]] = Counter()
        for attempt in Attempt.objects.filter(pk__in=self.holds).select_related("channel"):
            for subject in self.subjects(attempt):
                expected[subject, self.holds[attempt.pk]] += 1
        stored: Counter[tuple[capacity.Subject, str]] = Counter()
        for row in Occupancy.objects.all():
            stored[(row.kind, row.subject_id), LIVE] = row.confirmed
            stored[(row.kind, row.subject_id), UNKNOWN] = row.unknown
        assert +stored == expected
        assert recount(self.now) == []

    def freed(self, attempt: Attempt) -> None:
        del self.holds[attempt.pk]

    def held(self) -> Any:
        return CapacityLease.objects.filter(released_at=None)

    def lease(self, attempt: Attempt) -> CapacityLease:
        return self.held().get(attempt=attempt)  # type: ignore[no-any-return]

    def one(self, which: int, *states: str) -> Attempt | None:
        return self.any_of(_WHOLE.filter(state__in=states), which)  # type: ignore[no-any-return]

    @staticmethod
    def one_of(attempt: Attempt) -> Attempt:
        """As it stands now."""
        return _WHOLE.get(pk=attempt.pk)

    @staticmethod
    def any_of(rows: Any, which: int) -> Any:
        found = list(rows.order_by("pk"))
        return found[which % len(found)] if found else None

    @staticmethod
    def state(attempt: Attempt) -> str:
        return Attempt.objects.values_list("state", flat=True).get(pk=attempt.pk)

    def name(self) -> str:
        self.names += 1
        return f"cgt-{self.names}"

    @staticmethod
    def subjects(attempt: Attempt) -> list[capacity.Subject]:
        return capacity.Place(
            attempt.channel_id, attempt.supply_id, attempt.channel.capacity_group_id
        ).subjects()

    @staticmethod
    def taken() -> Counter[capacity.Subject]:
        return Counter(
            {(row.kind, row.subject_id): row.confirmed + row.unknown for row in Occupancy.objects.all()}
        )

    @staticmethod
    def slots(subject: capacity.Subject) -> int:
        kind, number = subject
        if kind == capacity.Kind.GROUP:
            return CapacityGroup.objects.get(pk=number).capacity
        rows: Any = Channel if kind == capacity.Kind.CHANNEL else Supply
        return rows.objects.get(pk=number).concurrency  # type: ignore[no-any-return]


@pytest.mark.django_db
def test_slots_are_held_by_those_who_should_hold_them_whatever_happens_in_whatever_order() -> None:
    run_state_machine_as_test(
        Leases,
        settings=settings(
            max_examples=8,
            stateful_step_count=30,
            phases=[Phase.generate],
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
