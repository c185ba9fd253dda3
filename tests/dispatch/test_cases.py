"""Failures that users of such systems reported (S…), and faults that a day in production brings: each ends
well here. The simulator's own log says what the provider saw."""

from typing import Any

import pytest

from catalog.models import Channel
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt
from dispatch.services import submit
from tests.engine import Engine

A = AttemptState


def script(engine: Engine, call: str, times: int | None = None, **do: Any) -> None:
    rule: dict[str, Any] = {"when": {"call": call}, "do": do}
    engine.simulator.script({"rules": [rule if times is None else {**rule, "times": times}]})


def posts(engine: Engine) -> int:
    return len(engine.simulator.world.log()["posts"])


def balance(engine: Engine) -> int:
    engine.customer.refresh_from_db()
    return engine.customer.balance_micros


def lose_credential(slug: str) -> None:
    """The sealed secret of another row does not open here, as after a lost master key."""
    other = Channel.objects.exclude(slug=slug).exclude(credential="").values_list("credential", flat=True)[0]
    Channel.objects.filter(slug=slug).update(credential=other)


def test_an_answer_that_comes_after_its_lease_ran_out_is_still_believed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S01: the reconciler took the attempt for lost while its worker still read the provider's answer."""
    send = submit._send

    def send_slowly(attempt: Attempt, clock: Any) -> Any:
        outcome = send(attempt, clock)
        engine.step(70)
        return outcome

    monkeypatch.setattr(submit, "_send", send_slowly)
    job = engine.job()
    engine.finish(job)
    assert engine.attempts(job) == [A.SUCCEEDED]
    assert posts(engine) == 1


def with_one_supply(engine: Engine) -> None:
    """Nobody else is left to switch to."""
    Channel.objects.filter(slug="ark-singapore").update(state="disabled")
