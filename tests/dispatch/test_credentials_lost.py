"""A credential that does not open stops its own channel, and nothing of others."""

from catalog.models import Channel
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt
from tests.engine import Engine

A = AttemptState


def lose_credential(slug: str) -> None:
    """The sealed secret of another row does not open here, as after a lost master key."""
    other = Channel.objects.exclude(slug=slug).exclude(credential="").values_list("credential", flat=True)[0]
    Channel.objects.filter(slug=slug).update(credential=other)


def test_a_credential_that_does_not_open_stops_only_its_own_polls(engine: Engine) -> None:
    """Fault 54: the channel is unavailable; the jobs of others go on."""
    first = engine.job()
    engine.drain()
    Channel.objects.filter(slug="ark-beijing").update(state="disabled")
    second = engine.job()
    engine.drain()
    lose_credential("ark-beijing")
    engine.finish(second)
    assert second.state == "succeeded"
    engine.run(9_000, step_s=300)
    assert engine.attempts(first) == [A.ABANDONED]


def test_a_credential_that_does_not_open_is_proved_unsent_and_switches_at_once(engine: Engine) -> None:
    lose_credential("ark-beijing")
    job = engine.job()
    engine.finish(job, within_s=30)
    assert engine.attempts(job) == [A.FAILED, A.SUCCEEDED]
    assert Attempt.objects.get(job=job, number=1).error_code == "auth"


def test_a_credential_that_does_not_open_does_not_keep_an_uncertain_submission_for_ever(
    engine: Engine,
) -> None:
    """S15: no job stays open without an end in sight."""
    engine.script("submit", answer="drop_after_acceptance")
    job = engine.job()
    engine.drain()
    lose_credential("ark-beijing")
    engine.run(2_400, step_s=120)
    assert engine.attempts(job) == [A.ABANDONED]
    assert engine.reload(job).error_code == "submission_unknown"


def test_a_credential_that_does_not_open_does_not_keep_a_lost_output_for_ever(engine: Engine) -> None:
    engine.script("submit", output="missing")
    job = engine.job()
    while engine.attempts(job) != [A.FETCHING]:
        engine.step(2)
    engine.run(30)
    lose_credential("ark-beijing")
    engine.run(22_000, step_s=1_000)
    assert (engine.reload(job).state, job.error_code) == ("failed", "output_lost")
