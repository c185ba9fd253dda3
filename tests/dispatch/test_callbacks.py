"""What providers say unasked (S40e, faults 31 to 34): early, twice, late, out of order, forged or of another
attempt; each once, and never more than the provider's own answer to a poll would change."""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from billing.models import CreditEntry, ProviderUsageEntry
from catalog.audit import Actor
from catalog.callback_addresses import callback_secrets, callback_url
from catalog.models import Channel
from catalog.providers import registry
from catalog.providers.volcengine_ark import VolcengineArk
from catalog.simulator.server import FACES
from catalog.simulator.world import Task
from dispatch import tasks
from dispatch.callbacks import door
from dispatch.callbacks.pace import Pace
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, Job, ProviderEvent, RejectedCallback
from dispatch.services import keep_house, take_callback
from dispatch.services.decide_submission import provider_does_not_have_it
from health.models import Alert
from tests.engine import Engine

A = AttemptState


@pytest.fixture(autouse=True)
def _public(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PUBLIC_URL = "http://testserver"
    monkeypatch.setattr(door, "_OF_CHANNELS", Pace(400, 0))
    monkeypatch.setattr(door, "_OF_STRANGERS", Pace(20, 0))


def submitted(engine: Engine, **do: Any) -> tuple[Job, Task]:
    """A job at the provider that calls nobody by itself, and the provider's task."""
    engine.script(callback="none", **do)
    job = engine.job()
    engine.drain()
    return job, list(engine.simulator.world._tasks.values())[-1]


def body_of(engine: Engine, task: Task, word: str, **changes: Any) -> bytes:
    told = json.loads(FACES["ark"].callback(task, word, engine.now.timestamp(), engine.simulator.url))
    return json.dumps({**told, "updated_at": int(engine.now.timestamp()), **changes}).encode()


def call(task: Task, body: bytes, change: Callable[[str], str] = str) -> int:
    """The door's answer to what the provider posts; `change` is what a forger does to the address."""
    address = change(task.request["callback_url"].removeprefix("http://testserver"))
    return Client().post(address, body, content_type="application/json").status_code


def told(engine: Engine) -> list[str]:
    """Callbacks that were believed to be the provider's, as they were stored."""
    return list(
        ProviderEvent.objects.filter(kind="callback").order_by("id").values_list("outcome", flat=True)
    )


def attempt_of(job: Job) -> Attempt:
    return Attempt.objects.select_related("provider_job").get(job=job)


def test_a_provider_calls_early_twice_and_out_of_order_and_the_job_is_delivered_once(
    engine: Engine, settings: LazySettings, live_server: Any
) -> None:
    """Faults 31 and 32, over real HTTP: the simulator calls, before the submission is answered too."""
    settings.PUBLIC_URL = live_server.url
    for callback, jobs in (("early", 1), ("twice", 1), ("reordered", 1)):
        engine.script(callback=callback)
        made = [engine.job() for _ in range(jobs)]
        engine.drain()
        if callback == "early":
            assert told(engine) == ["provider_queued"]
            first = ProviderEvent.objects.filter(attempt__job=made[0]).order_by("id").first()
            assert first is not None
            assert first.kind == "callback", "it was stored before the answer was"
        engine.finish(*made)
    called = {"early": 3, "twice": 6, "reordered": 3}
    for task, callback in zip(engine.simulator.world._tasks.values(), called, strict=True):
        _awaited(engine, task, called[callback])
    assert sorted(told(engine)) == sorted(["provider_queued", "running", "succeeded"] * 3)
    assert not RejectedCallback.objects.exists()
    assert ProviderUsageEntry.objects.filter(kind="settled").count() == 3
    assert CreditEntry.objects.filter(kind="charge").count() == 3


def _awaited(engine: Engine, task: Task, calls: int) -> None:
    until = time.monotonic() + 20
    while task.calls < calls:
        assert time.monotonic() < until, (task.calls, calls)
        engine.simulator.world.advance(0)
        time.sleep(0.01)


def test_a_call_has_the_attempt_looked_at_at_once_however_often_it_comes(engine: Engine) -> None:
    """Fault 32. Ark signs nothing, so that its word is a hint: the poll tells."""
    job, task = submitted(engine, queue_s=600)
    engine.run(30)
    attempt = attempt_of(job)
    assert attempt.next_look_at is not None
    assert attempt.next_look_at > engine.now
    body = body_of(engine, task, "succeeded")
    answers = [call(task, body) for _ in range(500)]
    assert set(answers) == {204, 429}, "one channel is not let in without end"
    assert told(engine) == ["succeeded"]
    after = attempt_of(job)
    assert (after.state, after.next_look_at) == (attempt.state, engine.now)
    assert after.state_version == attempt.state_version + 1
    polls = after.provider_job.polls
    tasks.poll()
    assert attempt_of(job).provider_job.polls == polls + 1
    assert engine.attempts(job) == [A.PROVIDER_QUEUED], "nobody is believed who is only known by an address"


def forged_addresses(engine: Engine, own: Task, other: Task) -> Iterator[tuple[str, Callable[[str], str]]]:
    singapore = callback_url(Channel.objects.get(slug="ark-singapore")).removeprefix("http://testserver")
    yield "another path", lambda address: address.replace("/?key", "0/?key")
    yield "a path that is none", lambda _: "/callbacks/ark/chn_nothing/?key=x&token=y"
    yield "another provider's", lambda address: address.replace("/ark/", "/fal/")
    yield "another channel's", lambda address: singapore + "?" + address.partition("?")[2]
    yield "no token", lambda address: address.partition("?")[0]
    yield "a guessed token", lambda address: address[:-8] + "00000000"
    yield "another attempt's key", lambda address: address.replace(own.reference, other.reference)


def test_who_can_not_prove_himself_changes_nothing_and_is_kept_as_rejected(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 33: forged, stale, unreadable, or about a task that belongs to another attempt."""
    monkeypatch.setattr(door, "_OF_STRANGERS", Pace(100, 0))
    other_job, other = submitted(engine, queue_s=600)
    job, task = submitted(engine, queue_s=600)
    before = list(Attempt.objects.order_by("id").values_list("state_version", "next_look_at"))
    good = body_of(engine, task, "succeeded")
    cases = [(name, good, change) for name, change in forged_addresses(engine, task, other)]
    cases += [
        ("not JSON", b"\xff", str),
        ("nothing", b"", str),
        ("another attempt's task", body_of(engine, other, "succeeded"), str),
        ("a task of nobody", body_of(engine, task, "succeeded", id="cgt-unheard-of"), str),
    ]
    for late in (timedelta(minutes=6), timedelta(days=3), timedelta(minutes=-6)):
        sent = int((engine.now - late).timestamp())
        cases.append((f"{late} late", body_of(engine, task, "succeeded", updated_at=sent), str))
    answers = {name: call(task, body, change) for name, body, change in cases}
    assert set(answers.values()) == {401}, answers
    assert told(engine) == []
    assert list(Attempt.objects.order_by("id").values_list("state_version", "next_look_at")) == before
    assert RejectedCallback.objects.count() == len(cases)
    kept = json.dumps(list(RejectedCallback.objects.values("provider", "reason", "sha256")))
    assert "lighthouse" not in kept
    assert engine.attempts(job) == engine.attempts(other_job)
    assert call(task, good) == 204, "and the provider's own call is still taken"


def test_strangers_fill_no_disk_and_keep_no_provider_waiting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, task = submitted(engine, queue_s=600)
    body = body_of(engine, task, "running")
    answers = [call(task, body, lambda _: "/callbacks/ark/nobody-knows/") for _ in range(30)]
    assert (answers.count(401), answers.count(429)) == (20, 10)
    for _ in range(40):
        call(task, body, lambda address: address[:-4] + "0000")
    assert RejectedCallback.objects.count() == take_callback.REJECTED_A_MINUTE
    monkeypatch.setattr(take_callback, "REJECTED_KEPT", 7)
    keep_house.keep_house(engine.now)
    assert RejectedCallback.objects.count() <= 7
    assert call(task, b"x" * (door.MOST_BODY_BYTES + 1)) == 413
    assert Client().get(task.request["callback_url"]).status_code == 405
    assert call(task, body) == 204
    assert attempt_of(job).state == A.ACCEPTED


def test_a_master_key_is_replaced_while_jobs_run(engine: Engine, settings: LazySettings) -> None:
    """Fault 33: the address that was given out works as long as its key is still listed."""
    _, task = submitted(engine, queue_s=600)
    old, channel = settings.MASTER_KEYS, Channel.objects.get(slug="ark-beijing")
    address, secrets = callback_url(channel), callback_secrets(channel)
    settings.MASTER_KEYS = [f"new:{b64encode(bytes(range(1, 33))).decode()}", *old]
    assert call(task, body_of(engine, task, "queued")) == 204
    assert callback_url(channel) != address
    assert callback_secrets(channel)[1:] == secrets
    settings.MASTER_KEYS = settings.MASTER_KEYS[:1]
    assert call(task, body_of(engine, task, "running")) == 401
    settings.MASTER_KEYS = old


def test_no_address_is_given_where_nobody_could_call_or_a_channel_is_only_polled(
    engine: Engine, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = ""
    _, unreachable = submitted(engine)
    assert "callback_url" not in unreachable.request
    settings.PUBLIC_URL = "http://testserver"
    Channel.objects.update(config={"callbacks": False})
    _, polled = submitted(engine)
    assert "callback_url" not in polled.request


def test_a_lost_submission_is_found_by_the_call_that_already_came(engine: Engine) -> None:
    """Page 30: the provider has it, and said so, though it lists nothing."""
    engine.script("list", answer="not_json")
    job, task = submitted(engine, answer="drop_after_acceptance", queue_s=600)
    assert engine.attempts(job) == [A.SUBMISSION_UNCERTAIN]
    assert call(task, body_of(engine, task, "queued")) == 204
    engine.step()
    assert engine.attempts(job) == [A.ACCEPTED]
    found = ProviderEvent.objects.get(attempt__job=job, kind="recover", outcome="found")
    assert found.raw["raw"]["told_by"] == "callback"
    assert attempt_of(job).provider_job.provider_job_id == task.id
    assert list(engine.accepted().values()) == [1]


def test_a_call_after_the_end_is_kept_and_one_after_giving_up_is_costed(engine: Engine) -> None:
    """Fault 32: later than everything, and still within its own time."""
    job, task = submitted(engine)
    engine.finish(job)
    version = attempt_of(job).state_version
    assert call(task, body_of(engine, task, "failed")) == 204
    assert (attempt_of(job).state_version, engine.reload(job).state) == (version, "succeeded")
    engine.script("list", answer="not_json")
    lost, lost_task = submitted(engine, answer="drop_after_acceptance", fail="InternalServiceError")
    engine.run(2_400, step_s=120)
    assert engine.attempts(lost) == [A.ABANDONED]
    assert call(lost_task, body_of(engine, lost_task, "failed")) == 204
    engine.run(4, step_s=1)
    assert Attempt.objects.get(job=lost).cost_micros == 0, "it failed, and failures are free there"
    assert (engine.reload(lost).state, lost.provider_cost_micros) == ("failed", 0)
    booked = ProviderUsageEntry.objects.filter(attempt=Attempt.objects.get(job=lost).public_id)
    assert sum(entry.amount_micros for entry in booked if entry.platform_loss) == 0


def test_a_call_of_what_was_taken_as_never_created_is_booked_as_our_loss_once_and_told(
    engine: Engine,
) -> None:
    job, task = submitted(engine, times=1, answer="drop_after_acceptance")
    first = Attempt.objects.get(job=job)
    provider_does_not_have_it(first.pk, "not in their console", Actor("li.m", "console"), engine.now)
    engine.finish(job)
    for word in ("running", "succeeded"):
        assert call(task, body_of(engine, task, word)) == 204
    engine.run(120)
    first.refresh_from_db()
    booked = ProviderUsageEntry.objects.filter(attempt=first.public_id)
    assert [(entry.amount_micros, entry.platform_loss) for entry in booked] == [(first.quote_micros, True)]
    assert (first.state, first.cost_micros) == ("failed", first.quote_micros)
    assert Alert.objects.get(code="unmatched_charge").details["provider_job"] == task.id
    assert engine.reload(job).provider_cost_micros == sum(
        attempt.cost_micros for attempt in Attempt.objects.filter(job=job)
    )


class SigningArk(VolcengineArk):
    """As if Ark signed its calls: their bodies are believed."""

    capabilities = replace(VolcengineArk.capabilities, callback_signature="provider")


def test_a_signed_call_is_believed_and_of_twenty_at_once_with_a_poll_one_counts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faults 29 and 34, S20: the first end is the end."""
    monkeypatch.setattr(registry, "ADAPTERS", {"ark": SigningArk()})
    monkeypatch.setattr(take_callback, "ADAPTERS", registry.ADAPTERS)
    job, task = submitted(engine, queue_s=0, run_s=1)
    engine.now += timedelta(seconds=10)
    bodies = [body_of(engine, task, "succeeded", seed=number) for number in range(20)]

    def at_once(number: int) -> int:
        try:
            if number == 7:
                tasks.poll()
                return 204
            return call(task, bodies[number])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(at_once, range(20))) == {204}
    assert engine.attempts(job) == [A.GENERATED]
    assert call(task, body_of(engine, task, "running")) == 204
    assert call(task, body_of(engine, task, "failed")) == 204
    assert engine.attempts(job) == [A.GENERATED]
    engine.finish(job)
    assert ProviderUsageEntry.objects.filter(kind="settled").count() == 1
    assert CreditEntry.objects.filter(job=job.public_id, kind="charge").count() == 1
