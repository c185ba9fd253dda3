"""What a broken output does: it is fetched again, never generated again."""

import pytest
from django.conf import LazySettings
from django.conf import settings as configured

from dispatch.lifecycle import AttemptState
from dispatch.models import Asset, ProviderEvent
from dispatch.outputs.storage import MediaStore
from health.models import Alert, SupplyHealth
from tests.dispatch.test_api import problem
from tests.engine import Engine


def script(engine: Engine, **wishes: object) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": wishes}]})


def test_an_output_that_answers_504_twice_is_delivered_without_a_second_generation(engine: Engine) -> None:
    script(engine, output_statuses=[504, 504])
    job = engine.job()
    engine.finish(job)
    assert job.state == "succeeded"
    assert len(engine.simulator.world.log()["posts"]) == 1
    assert ProviderEvent.objects.filter(kind="fetch", outcome="failed").count() == 2
    assert not SupplyHealth.objects.exclude(state="healthy").exists()


@pytest.mark.parametrize("output", ["wrong_type", "truncated", "playlist", "redirect"])
def test_an_output_that_is_not_what_it_claims_is_never_delivered_and_given_up_after_the_deadline(
    engine: Engine, output: str
) -> None:
    script(engine, output=output)
    job = engine.job()
    engine.run(60, step_s=10)
    assert engine.attempts(job) == [AttemptState.FETCHING]
    assert not Asset.objects.exists()
    for _ in range(15):
        engine.step(1_800)
    assert engine.attempts(job) == [AttemptState.FAILED]
    assert (engine.reload(job).state, job.error_code, job.charged_micros) == ("failed", "output_lost", 0)
    assert Alert.objects.get(code="output_lost").severity == "critical"
    assert len(engine.simulator.world.log()["posts"]) == 1


def test_an_output_that_can_not_be_adopted_is_given_up_after_the_deadline(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.OUTPUT_FETCH_DEADLINE_S = 600
    monkeypatch.setattr("dispatch.services.fetch_output.kept_until", lambda _: 1 / 0)
    job = engine.job()
    engine.run(1_800, step_s=60)
    assert (engine.reload(job).state, engine.attempts(job)) == ("failed", ["failed"])
    assert Alert.objects.get(code="output_lost").details["why"] == "not adopted: ZeroDivisionError"


def test_a_delivered_file_that_is_gone_is_told_in_words_and_to_operators(engine: Engine) -> None:
    job = engine.job()
    engine.finish(job)
    MediaStore(configured.MEDIA_DIR).path(Asset.objects.get(attempt__job=job).path).unlink()
    answer = engine.api.get(f"/api/v1/jobs/{job.public_id}/output/1/")
    assert problem(answer) == (410, "output_expired")
    assert Alert.objects.get(code="output_lost").details["why"] == "its stored file is missing"


def test_a_success_without_an_output_ends_at_once(engine: Engine) -> None:
    script(engine, without_output=True)
    job = engine.job()
    engine.finish(job)
    assert job.state == "failed"
    assert job.charged_micros == 0
