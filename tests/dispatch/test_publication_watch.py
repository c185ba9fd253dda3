"""A publication is watched: what the replay had said beside what came of it, and the way back."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django_q.models import OrmQ

from catalog.audit import Actor
from catalog.facts import BindingFacts
from catalog.models import PublicModel
from dispatch import forecasts
from dispatch.catalogue.repository import saved_model_facts
from dispatch.forecasts import Forecast
from dispatch.models import Attempt, PublicationWatch
from dispatch.queries.publication_watches import watched_now
from dispatch.services.begin_publication_watch import LASTS
from dispatch.services.end_publication_watches import end_publication_watches
from dispatch.services.publish import Published, publish
from dispatch.services.save_model import save_model
from tests.console import SignIn
from tests.engine import Engine

ALICE = Actor("alice", "console")
SLUG = "seedance-2.0-933"
EXACT, OTHER = "beijing-seedance-2-0", "singapore-seedance-2-0"
PAGE = f"/console/models/{SLUG}/publication/"


def published(engine: Engine, *bindings: BindingFacts) -> PublicModel:
    """Saved with these bindings, and opened."""
    row = PublicModel.objects.select_related("policy").get(slug=SLUG)
    facts = replace(saved_model_facts(row), bindings=bindings)
    save_model(facts, expected_revision=row.revision, actor=ALICE, now=engine.now, note="try the other")
    result = publish(PublicModel.objects.get(slug=SLUG), actor=ALICE, now=engine.now)
    assert isinstance(result, Published), [str(gate) for gate in result.gates]
    return result.model


def moved(engine: Engine, jobs: int = 5) -> PublicModel:
    """After a day on EXACT, everything goes to OTHER."""
    engine.finish(*(engine.job() for _ in range(jobs)))
    engine.run(60, step_s=20)
    model = published(engine, BindingFacts(OTHER, "exact"))
    engine.drain()
    return model


def text_of(client: Client, page: str = PAGE) -> str:
    response = client.get(page)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_a_publication_is_forecast_compared_and_kept_until_the_next_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "FEW", 4)
    before = PublicModel.objects.get(slug=SLUG).revision
    model = moved(engine)
    watch = PublicationWatch.objects.get(public_model=model, revision=model.revision)
    assert (watch.instead_of, watch.published_by) == (before, "alice")
    assert watch.until_at == watch.published_at + LASTS
    told = Forecast.read(watch.forecast or {})
    assert (told.picks, told.recorded, told.replayed) == ({OTHER: 5}, 5, 5)
    assert (told.success, told.currency) == (pytest.approx(0.9), "USD")
    assert told.cost_per_success_micros
    engine.finish(*(engine.job() for _ in range(4)))
    watched = watched_now(model, engine.now)
    assert watched is not None
    assert watched.actual.picks == {OTHER: 4}
    assert (watched.actual.delivered, watched.actual.success) == (4, 1.0)
    assert watched.actual.spent_micros == sum(
        each.cost_micros or 0 for each in Attempt.objects.filter(supply__slug=OTHER)
    )
    end_publication_watches(engine.now)
    assert PublicationWatch.objects.get(pk=watch.pk).actual is None, "its time is not over"
    published(engine, BindingFacts(EXACT, "exact"))
    watch.refresh_from_db()
    newer = PublicationWatch.objects.get(public_model=model, revision=model.revision + 1)
    assert (watch.until_at, newer.instead_of) == (engine.now, model.revision)
    engine.now += timedelta(seconds=1)
    end_publication_watches(engine.now)
    watch.refresh_from_db()
    assert (watch.share_error, watch.actual) == (0, watched.actual.as_json())
    assert set(PublicationWatch.objects.filter(actual__isnull=True, public_model=model)) == {newer}
    engine.finish(engine.job())
    end_publication_watches(engine.now)
    kept = PublicationWatch.objects.get(pk=watch.pk)
    assert kept.actual == watch.actual, "what is over does not change"


def test_a_forecast_that_was_lost_is_asked_for_again(engine: Engine) -> None:
    model = published(engine, BindingFacts(OTHER, "exact"))
    OrmQ.objects.all().delete()
    end_publication_watches(engine.now + timedelta(minutes=1))
    assert not OrmQ.objects.exists()
    engine.now += timedelta(minutes=3)
    end_publication_watches(engine.now)
    engine.drain()
    watch = PublicationWatch.objects.get(public_model=model, revision=model.revision)
    assert Forecast.read(watch.forecast or {}) == Forecast(currency="USD")


@pytest.fixture
def publisher(engine: Engine, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("django.utils.timezone.now", lambda: engine.now)
    monkeypatch.setattr(forecasts, "FEW", 4)
    return sign_in("operator", "publisher")


def test_the_page_says_as_predicted_or_off_by_how_much(engine: Engine, publisher: Client) -> None:
    model = moved(engine)
    leads = f"/console/models/{SLUG}/"
    assert f'hx-get="{PAGE}"' in text_of(publisher, leads)
    assert 'data-verdict="too_few"' in text_of(publisher)
    assert "Too few to judge: 0 selections" in text_of(publisher)
    engine.finish(*(engine.job() for _ in range(4)))
    assert "As predicted: the largest difference of a share is 0.0 points." in text_of(publisher)
    watch = PublicationWatch.objects.get(public_model=model, revision=model.revision)
    forecast = Forecast.read(watch.forecast or {})
    told = replace(forecast, picks={EXACT: 600, OTHER: 400}).as_json()
    PublicationWatch.objects.filter(pk=watch.pk).update(forecast=told)
    page = text_of(publisher)
    assert "Off by 60.0 points at" in page
    assert re.search(rf"<th scope=\"row\">{OTHER}</th><td[^>]*>40.0 %</td><td[^>]*>100.0 %</td>", page)
    assert "+60.0 points" in page
    assert "data-live" in page.split('id="publication"')[1][:200]
    engine.now = watch.until_at + timedelta(seconds=1)
    end_publication_watches(engine.now)
    page = text_of(publisher)
    assert "data-live" not in page.split('id="publication"')[1][:200], "L7: what is over asks no more"
    revisions = text_of(publisher, f"/console/models/{SLUG}/revisions/")
    line = revisions.split(f'id="forecast-{model.revision}"')[1][:300]
    assert "Off by 60.0 points" in line
    assert "predicted" in line
    engine.now += timedelta(days=1)
    assert f'hx-get="{PAGE}"' not in text_of(publisher, leads), "a day later"
    assert "Nothing was published in the last day." in text_of(publisher)


def test_one_click_reverts_by_role_through_the_confirmed_way_once_and_while_it_serves(
    engine: Engine, publisher: Client, sign_in: SignIn
) -> None:
    model = moved(engine, jobs=1)
    other = text_of(sign_in("operator", username="zhao"))
    assert "Reverting needs the role publisher." in other
    assert 'id="revert"' not in other
    page = publisher.get(PAGE)
    watch = PublicationWatch.objects.get(public_model=model, revision=model.revision)
    address = f"/console/models/{SLUG}/revisions/{watch.instead_of}/revert/"
    assert f'action="{address}"' in page.content.decode()
    assert publisher.post(address, {"confirm": "made up"}).status_code == 403
    form = {"confirm": page.context["token"]}
    for _ in range(2):
        assert publisher.post(address, form)["Location"] == f"/console/models/{SLUG}/"
    row = PublicModel.objects.select_related("policy").get(slug=SLUG)
    assert (row.revision, row.published_revision, row.published) == (
        model.revision + 1,
        model.revision + 1,
        True,
    )
    assert EXACT in {each.supply for each in saved_model_facts(row).bindings if each.tier == "exact"}
    assert 'id="revert"' in text_of(publisher), "and back again"
    facts = replace(saved_model_facts(row), disclosure="new")
    save_model(facts, expected_revision=row.revision, actor=ALICE, now=engine.now)
    assert 'id="revert"' not in text_of(publisher), "it does not serve any more"
