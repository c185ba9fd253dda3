"""A small yard for tests of the fair queue: supplies with so many slots, tenants with so many jobs, scans.

Jobs come into the queue as the API brings them; attempts are moved on by hand, so that a slot is freed when a
test says so. No provider is asked."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from billing.models import ApiKey, Customer
from catalog.models import PublicModel, Supply
from catalog.revision import bump_revision
from dispatch import queue
from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt, Job
from dispatch.moves import Move
from dispatch.services.advance import advance
from dispatch.services.dispatch_scan import scan
from tests.factories import (
    NOW,
    ApiKeyFactory,
    ChannelFactory,
    JobFactory,
    PublicModelFactory,
    SupplyBindingFactory,
    SupplyFactory,
)

A = AttemptState
_LIFE = (A.SUBMITTING, A.ACCEPTED, A.GENERATED)


class Yard:
    def __init__(self) -> None:
        self.now: datetime = NOW

    def supply(self, slots: int) -> Supply:
        return SupplyFactory(channel=ChannelFactory(concurrency=slots), concurrency=slots)

    def model(self, *slots: int) -> PublicModel:
        """One that is served by supplies of so many slots each."""
        return self.model_on(*(self.supply(each) for each in slots))

    def model_on(self, *supplies: Supply) -> PublicModel:
        model = PublicModelFactory()
        for supply in supplies:
            SupplyBindingFactory(public_model=model, supply=supply)
        bump_revision()
        return model

    def resize(self, supply: Supply, slots: int) -> None:
        Supply.objects.filter(pk=supply.pk).update(concurrency=slots)
        type(supply.channel).objects.filter(pk=supply.channel_id).update(concurrency=slots)
        bump_revision()

    def tenant(self, **limits: Any) -> ApiKey:
        key = ApiKeyFactory()
        if limits:
            Customer.objects.filter(pk=key.customer_id).update(**limits)
            key.customer.refresh_from_db()
        return key

    def job(self, key: ApiKey, model: PublicModel, **columns: Any) -> Job:
        """Each a millisecond after the one before, so that their order is plain."""
        self.now += timedelta(milliseconds=1)
        columns = {"created_at": self.now, "next_action_at": None, **columns}
        job = JobFactory.build(api_key=key, customer=key.customer, public_model=model, **columns)
        queue.take_place(job, self.now)
        job.save()
        queue.enter(job)
        return job

    def jobs(self, count: int, key: ApiKey, model: PublicModel, **columns: Any) -> list[Job]:
        return [self.job(key, model, **columns) for _ in range(count)]

    def scan(self, after_s: float = 1) -> list[Job]:
        """The jobs that began, in the order in which they did."""
        self.now += timedelta(seconds=after_s)
        newest = Attempt.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        began = scan(lambda: self.now)
        started = Attempt.objects.filter(pk__gt=newest).order_by("pk").select_related("job__customer")
        assert began == len(started)
        return [attempt.job for attempt in started]

    def complete(self, *jobs: Job) -> None:
        """The provider has generated: the slot is free."""
        for job in jobs:
            attempt = job.attempts.get()
            for state in _LIFE:
                changes = {"next_look_at": self.now} if state is A.GENERATED else {}
                if state is A.ACCEPTED:
                    changes = {"accepted_at": self.now}
                moved = advance(Move(attempt.pk, attempt.state_version, state, changes), self.now)
                assert moved is not None
                attempt = moved


def waiting(jobs: Iterable[Job]) -> int:
    return Job.objects.filter(pk__in=[job.pk for job in jobs], state=JobState.QUEUED).count()
