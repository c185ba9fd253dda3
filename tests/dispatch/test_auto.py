"""Routing mode `auto`: the platform picks the model, says why, and keeps the evidence."""

from fractions import Fraction
from typing import Any

import pytest

from catalog.models import PublicModel, Supply, SupplyBinding
from catalog.revision import bump_revision
from dispatch.models import Job, Occupancy
from dispatch.services import accept
from tests.dispatch.test_api import problem
from tests.engine import IMAGE, VIDEO, Engine

AUTO = {"prompt": "a lighthouse in a storm", "duration_s": 5, "routing_mode": "auto"}
PRO, MAIN = "seedance-1.0-pro", "seedance-2.0-933"


def model_of(engine: Engine, **changes: Any) -> tuple[str, str]:
    job = engine.job(AUTO, **changes)
    assert job.model_choice is not None
    return job.model_choice["chosen"], job.model_choice["why"]


def test_the_cheapest_of_equal_tiers_is_chosen_and_the_job_stays_with_it(engine: Engine) -> None:
    job = engine.job(AUTO)
    choice = job.model_choice
    assert choice is not None
    assert (choice["chosen"], choice["why"]) == (PRO, "lowest_cost")
    assert set(choice["models"]) == {PRO, MAIN}
    costs = {slug: Fraction(each["expected_cost"]) for slug, each in choice["models"].items()}
    assert costs[PRO] < costs[MAIN]
    assert all(each["decision"]["outcome"] == "chosen" for each in choice["models"].values())
    body = engine.api.get(f"/api/v1/jobs/{job.public_id}/").json()
    assert body["model"] == PRO
    engine.finish(job)
    assert (job.state, job.public_model.slug) == ("succeeded", PRO)
    assert job.charged_micros == job.reserved_micros > 0
    again = engine.job({**AUTO, "model": "auto"})
    assert again.public_model.slug == PRO


def test_a_model_that_can_not_take_the_request_makes_no_offer(engine: Engine) -> None:
    job = engine.job(AUTO, duration_s=7)
    assert job.model_choice is not None
    assert (job.model_choice["chosen"], job.model_choice["why"]) == (MAIN, "only_offer")
    assert "duration_s" in job.model_choice["models"][PRO]["refused"]


def test_a_better_tier_beats_a_lower_cost(engine: Engine) -> None:
    SupplyBinding.objects.filter(public_model__slug=PRO).update(tier="fallback")
    bump_revision()
    assert model_of(engine) == (MAIN, "best_tier")


def test_where_all_are_full_the_first_that_waits_is_bound(engine: Engine) -> None:
    for supply in Supply.objects.filter(modality="video"):
        Occupancy.objects.update_or_create(
            kind=Occupancy.Kind.SUPPLY, subject_id=supply.pk, defaults={"confirmed": 99}
        )
    assert model_of(engine) == (PRO, "first_that_waits")
    Occupancy.objects.update(confirmed=0)


def test_where_nobody_ever_could_the_job_ends_without_a_supply(engine: Engine) -> None:
    job = engine.job(AUTO, regions=["mars"])
    assert job.model_choice is not None
    assert job.model_choice["why"] == "no_supply"
    engine.run(3)
    assert (engine.reload(job).state, job.error_code) == ("failed", "no_supply")
    assert job.rounds.exists()


def test_an_image_is_told_by_its_fields_and_a_bare_prompt_by_nothing(engine: Engine) -> None:
    image = engine.job({"prompt": "x", "routing_mode": "auto", "size": "1024x1024"})
    assert image.public_model.slug == IMAGE["model"]
    assert engine.job({"prompt": "x", "routing_mode": "auto", "mode": "text_to_image"}).modality == "image"
    named = engine.job({**VIDEO, "routing_mode": "auto"})
    assert named.public_model.slug == PRO, "a named model says the modality only"
    response = engine.submit({"prompt": "x", "routing_mode": "auto"})
    assert (problem(response), response.json()["field"]) == ((400, "invalid_request"), "mode")
    response = engine.submit({"prompt": "x"})
    assert (problem(response), response.json()["field"]) == ((400, "invalid_request"), "model")
    response = engine.submit({**AUTO, "model": "auto", "routing_mode": "strict_model"})
    assert problem(response) == (400, "invalid_request")


def test_a_request_that_no_model_takes_is_refused_with_each_reason(engine: Engine) -> None:
    response = engine.submit(AUTO, duration_s=99, key="k")
    assert problem(response) == (400, "invalid_request")
    assert PRO in response.json()["detail"]
    assert MAIN in response.json()["detail"]
    assert problem(engine.submit(AUTO, max_cost="0.01", key="k")) == (400, "invalid_request")
    assert not Job.objects.exists()


def test_only_models_that_this_customer_may_use_make_offers(engine: Engine) -> None:
    PublicModel.objects.filter(slug=PRO).update(allowed_groups=["elsewhere"])
    bump_revision()
    job = engine.job(AUTO)
    assert job.model_choice is not None
    assert set(job.model_choice["models"]) == {MAIN}
    PublicModel.objects.filter(modality="video").update(enabled=False, published=False)
    bump_revision()
    assert problem(engine.submit(AUTO)) == (404, "model_not_found")


def test_the_same_key_is_answered_without_choosing_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = engine.submit(AUTO, key="k")
    monkeypatch.setattr(accept, "draft_job", None)
    assert engine.submit(AUTO, key="k").content == first.content
