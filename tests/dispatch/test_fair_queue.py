"""The fair queue as rows and scans: who begins, who waits and why; nothing of it lives in a process."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.models import Customer
from catalog.models import PublicModel
from catalog.providers.types import CompileError, CompilePlan
from catalog.revision import bump_revision
from dispatch import live_catalogue, queue
from dispatch.compiling import Compilations
from dispatch.fairness import QUANTUM_MS
from dispatch.models import Attempt, ClassTurn, Job, Line, Lot, SelectionRound, TenantQueue
from dispatch.routing.types import Candidate
from dispatch.services.cancel import cancel
from dispatch.services.dispatch_scan import scan
from dispatch.services.keep_house import keep_house
from dispatch.services.measure_times import measure_times
from tests.dispatch.queue_yard import Yard, waiting
from tests.factories import NOW, VIDEO_REQUEST, AttemptFactory, JobFactory
from tests.invariants import assert_invariants


@pytest.fixture
def yard(db: None) -> Iterator[Yard]:
    yield Yard()
    assert_invariants()


def customers(jobs: list[Job]) -> list[int]:
    return [job.customer_id for job in jobs]


def test_twenty_jobs_on_five_eight_and_three_free_slots_start_exactly_sixteen(yard: Yard) -> None:
    """The example that must hold: four wait, and start within one scan of a release."""
    model, key = yard.model(5, 8, 3), yard.tenant()
    jobs = yard.jobs(20, key, model)
    began = yard.scan()
    assert [job.pk for job in began] == [job.pk for job in jobs[:16]]
    assert yard.scan() == []
    lot = Lot.objects.get()
    assert lot.outcome == "waiting_capacity"
    assert lot.waits_since_at is not None
    yard.complete(*began[:3])
    assert [job.pk for job in yard.scan(after_s=0)] == [job.pk for job in jobs[16:19]]
    yard.complete(began[3])
    assert [job.pk for job in yard.scan(after_s=0)] == [jobs[19].pk]
    assert Line.objects.get().is_active is False


def test_what_waits_costs_one_look_and_one_round_however_many_wait(yard: Yard) -> None:
    model, key = yard.model(1), yard.tenant()
    yard.jobs(30, key, model)
    yard.scan()
    for _ in range(5):
        yard.scan()
    assert SelectionRound.objects.count() == 2
    lot = Lot.objects.get()
    assert lot.round is not None
    assert (lot.round.outcome, lot.round.job.state) == ("waiting_capacity", "queued")

    def statements() -> int:
        yard.now += timedelta(seconds=1)
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert yard.scan() == []
        return len(seen)

    few = statements()
    yard.jobs(30, yard.tenant(), model)
    assert statements() == few


def test_one_job_of_a_tenant_begins_within_one_completion_of_another_ones_thousand(yard: Yard) -> None:
    """S39."""
    model, flood, quiet = yard.model(2), yard.tenant(), yard.tenant()
    yard.jobs(1_000, flood, model)
    running = yard.scan()
    only = yard.job(quiet, model)
    assert yard.scan() == []
    yard.complete(running[0])
    assert yard.scan() == [only]
    yard.complete(running[1])
    assert customers(yard.scan()) == [flood.customer_id]


def test_tenants_share_by_their_weights_and_the_order_survives_a_restart(yard: Yard) -> None:
    """Each scan here is as good as a new process: nothing but rows is carried over."""
    model = yard.model(4)
    heavy, light = yard.tenant(weight=3), yard.tenant(weight=1)
    yard.jobs(80, heavy, model)
    yard.jobs(80, light, model)
    served: Counter[int] = Counter()
    running = yard.scan()
    for _ in range(12):
        served.update(customers(running))
        yard.complete(*running)
        live_catalogue._kept.clear()
        running = yard.scan()
    assert served[heavy.customer_id] == pytest.approx(36, abs=1)
    assert served[light.customer_id] == pytest.approx(12, abs=1)
    for row in TenantQueue.objects.select_related("customer"):
        assert row.deficit_ms <= QUANTUM_MS * row.customer.weight


def test_classes_share_six_to_three_to_one_and_batch_never_starves(yard: Yard) -> None:
    model, key = yard.model(10), yard.tenant()
    for service_class in ("interactive", "standard", "batch"):
        yard.jobs(60, key, model, service_class=service_class)
    served: Counter[str] = Counter()
    for _ in range(6):
        began = yard.scan()
        served.update(job.service_class for job in began)
        yard.complete(*began)
    assert served["interactive"] == pytest.approx(36, abs=2)
    assert served["standard"] == pytest.approx(18, abs=2)
    assert served["batch"] == pytest.approx(6, abs=2)
    assert ClassTurn.objects.filter(has_turn=True).count() == 1


def test_a_saturated_model_blocks_neither_its_tenants_other_models_nor_anybody_else(yard: Yard) -> None:
    """S39: a tenant that only queues for what is full stays where it is in the ring, and gains nothing."""
    full, roomy = yard.model(1), yard.model(3)
    stuck, other = yard.tenant(), yard.tenant()
    yard.jobs(5, stuck, full)
    yard.scan()
    before = TenantQueue.objects.get(customer=stuck.customer).deficit_ms
    for _ in range(3):
        yard.scan()
    assert TenantQueue.objects.get(customer=stuck.customer).deficit_ms == before
    second, others = yard.job(stuck, roomy), yard.jobs(2, other, roomy)
    assert {job.pk for job in yard.scan()} == {second.pk, *(job.pk for job in others)}
    assert waiting(Job.objects.filter(public_model=full)) == 4


def test_a_tenant_at_its_own_limit_is_passed_by_with_that_as_the_reason(yard: Yard) -> None:
    model, bounded, free = yard.model(10), yard.tenant(max_in_flight=2), yard.tenant()
    jobs = yard.jobs(5, bounded, model)
    others = yard.jobs(3, free, model)
    began = yard.scan()
    assert Counter(customers(began)) == {bounded.customer_id: 2, free.customer_id: len(others)}
    row = TenantQueue.objects.get(customer=bounded.customer)
    assert (row.held_back, row.held_back_at) == ("tenant_limit", yard.now)
    assert yard.scan() == []
    yard.complete(next(job for job in began if job.customer_id == bounded.customer_id))
    assert [job.pk for job in yard.scan()] == [jobs[2].pk]
    Customer.objects.filter(pk=bounded.customer_id).update(max_in_flight=100)
    assert len(yard.scan()) == 2
    row.refresh_from_db()
    assert (row.held_back, row.held_back_at) == ("", None)


def test_inside_a_tenant_end_users_take_turns_and_projects_have_priorities(yard: Yard) -> None:
    model, key = yard.model(1), yard.tenant(project_priorities={"launch": 5, "chore": -5})
    made = {
        "ann 1": yard.job(key, model, end_user="ann"),
        "ann 2": yard.job(key, model, end_user="ann"),
        "bob chore": yard.job(key, model, end_user="bob", project="chore"),
        "bob": yard.job(key, model, end_user="bob"),
        "ann launch": yard.job(key, model, end_user="ann", project="launch"),
        "cid": yard.job(key, model, end_user="cid"),
    }
    names = {job.pk: name for name, job in made.items()}
    order = []
    while began := yard.scan():
        order.append(names[began[0].pk])
        yard.complete(*began)
    assert order == ["ann launch", "bob", "cid", "ann 1", "bob chore", "ann 2"]
    assert made["ann launch"].project_priority == 5


def test_a_job_that_waited_for_the_whole_range_of_priorities_is_passed_by_nobody_who_comes_later(
    yard: Yard,
) -> None:
    model, key = yard.model(1), yard.tenant(project_priorities={"launch": 5, "chore": -5})
    running = [yard.job(key, model)]
    yard.scan()
    old = yard.job(key, model, project="chore")
    yard.now += timedelta(seconds=300)
    yard.job(key, model, project="launch")
    yard.complete(*running)
    assert [job.pk for job in yard.scan()] == [old.pk]


def test_the_count_of_what_waits_is_kept_by_everything_that_ends_a_wait(yard: Yard) -> None:
    model, key = yard.model(2), yard.tenant()
    jobs = yard.jobs(6, key, model)
    yard.scan()
    cancel(jobs[2].pk, yard.now)
    assert Line.objects.get().waiting == 3
    Job.objects.filter(pk=jobs[3].pk).update(dispatch_deadline_at=yard.now)
    yard.scan()
    jobs[3].refresh_from_db()
    assert (jobs[3].state, jobs[3].error_code) == ("expired", "dispatch_deadline_exceeded")
    assert Line.objects.get().waiting == TenantQueue.objects.get().waiting == 2
    assert queue.enter(yard.job(key, model)) == 3, "what its customer had waiting before"
    queue.leave(Line.objects.get().pk)


def test_a_count_that_drifted_is_corrected_told_and_audited(yard: Yard) -> None:
    model, key = yard.model(1), yard.tenant()
    yard.jobs(4, key, model)
    yard.scan()
    Line.objects.update(waiting=9)
    TenantQueue.objects.update(waiting=1)
    keep_house(yard.now)
    assert Line.objects.get().waiting == TenantQueue.objects.get().waiting == 3


def test_a_revoked_key_ends_what_waits_under_it(yard: Yard) -> None:
    model, key, other = yard.model(1), yard.tenant(), yard.tenant()
    jobs = yard.jobs(3, key, model)
    yard.scan()
    kept = yard.job(other, model)
    key.revoked_at = yard.now
    key.save()
    keep_house(yard.now)
    assert {Job.objects.get(pk=job.pk).error_code for job in jobs[1:]} == {"access_revoked"}
    assert waiting([kept]) == 1


def test_a_million_overdue_jobs_would_drain_at_a_capped_rate_and_a_live_one_behind_them_still_begins(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 56, in small."""
    monkeypatch.setattr("dispatch.services.expire_parked.expire_parked.__defaults__", (10,))
    model, key = yard.model(3), yard.tenant()
    late = yard.jobs(25, key, model, dispatch_deadline_at=yard.now + timedelta(seconds=5))
    alive = yard.job(key, model)
    yard.now += timedelta(seconds=10)
    assert [job.pk for job in yard.scan()] == [alive.pk]
    assert waiting(late) == 15
    yard.scan()
    yard.scan()
    assert waiting(late) == 0


def test_a_watermark_never_hides_a_job_that_stands_before_it(yard: Yard) -> None:
    model, key = yard.model(1), yard.tenant(project_priorities={"launch": 5})
    first, later = yard.job(key, model), yard.jobs(3, key, model)
    yard.scan()
    assert Line.objects.get().watermark_at >= first.queue_at
    ahead = yard.job(key, model, project="launch")
    assert (
        ahead.queue_at < Line.objects.get().watermark_at or Line.objects.get().watermark_at == ahead.queue_at
    )
    yard.complete(first)
    assert [job.pk for job in yard.scan()] == [ahead.pk]
    assert waiting(later) == 3


def test_a_model_that_is_being_changed_keeps_its_lots_waiting_with_that_as_the_reason(yard: Yard) -> None:
    model, key = yard.model(2), yard.tenant()
    job = yard.job(key, model)
    PublicModel.objects.filter(pk=model.pk).update(published=False)
    bump_revision()
    assert yard.scan() == []
    assert Lot.objects.get().outcome == "model_not_published"
    PublicModel.objects.filter(pk=model.pk).update(published=True)
    bump_revision()
    assert yard.scan() == [job]


def test_jobs_of_one_model_that_ask_for_different_things_stand_in_different_lots(yard: Yard) -> None:
    model, key = yard.model(1), yard.tenant()
    yard.job(key, model)
    yard.job(key, model, request={**VIDEO_REQUEST, "prompt": "something else", "modality": "video"})
    assert Lot.objects.count() == 1, "the prompt decides nothing"
    yard.job(key, model, request={**VIDEO_REQUEST, "duration_s": 9, "modality": "video"})
    yard.job(key, model, request={**VIDEO_REQUEST, "routing_mode": "strict_model", "modality": "video"})
    assert Lot.objects.count() == 3


def test_a_job_whose_very_request_a_supply_refuses_blocks_nobody_in_its_lot(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It moves to the lot of those like it, keeps its place among them, and begins where it can."""
    first, second = yard.supply(1), yard.supply(2)
    model, key = yard.model_on(first, second), yard.tenant()
    compiled = Compilations._compile

    def refuses_odd_ones(self: Compilations, candidate: Candidate) -> CompilePlan | CompileError:
        if "odd" in self._request["prompt"] and candidate.supply.id == second.slug:
            return CompileError(("an odd prompt",))
        return compiled(self, candidate)

    monkeypatch.setattr(Compilations, "_compile", refuses_odd_ones)
    running = [yard.job(key, model, request=asking("odd one"))]
    yard.scan()
    odd = yard.jobs(2, key, model, request=asking("odd one"))
    plain = yard.jobs(3, key, model, request=asking("a lighthouse"))
    assert [job.pk for job in yard.scan()] == [plain[0].pk, plain[1].pk]
    assert yard.scan() == []
    assert Lot.objects.filter(asks__refused=[second.slug]).get().outcome == "waiting_capacity"
    assert waiting([*odd, plain[2]]) == 3
    yard.complete(*running)
    assert len(yard.scan()) == 1
    assert waiting(odd) + waiting(plain) == 2


def asking(prompt: str) -> dict[str, object]:
    return {**VIDEO_REQUEST, "prompt": prompt, "modality": "video"}


def test_what_kinds_of_work_took_is_what_new_jobs_of_them_cost(db: None) -> None:
    ended = [
        AttemptFactory(
            job__state="running",
            state="succeeded",
            accepted_at=NOW,
            generated_at=NOW + timedelta(seconds=30 + number),
        )
        for number in range(5)
    ]
    model = ended[0].job.public_model
    Job.objects.update(public_model=model)
    Attempt.objects.update(supply=ended[0].supply)
    fresh = JobFactory.build(
        api_key=ended[0].job.api_key, customer=ended[0].job.customer, public_model=model, created_at=NOW
    )
    queue.take_place(fresh, NOW)
    assert fresh.estimated_ms == 5 * 16_000, "guessed, as long as nothing was measured"
    measure_times(NOW + timedelta(hours=1))
    queue.take_place(fresh, NOW)
    assert fresh.estimated_ms == 32_000, "the median"


def test_a_job_that_came_while_a_scan_waited_for_its_turn_does_not_begin_before_it_came(yard: Yard) -> None:
    job = yard.job(yard.tenant(), yard.model(1))
    assert scan(lambda: yard.now - timedelta(seconds=2)) == 1
    job.refresh_from_db()
    attempt = job.attempts.select_related("selection_round").get()
    assert job.started_at == attempt.created_at == attempt.selection_round.created_at == job.created_at
