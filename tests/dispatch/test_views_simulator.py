"""The simulator, and why another supply was not chosen: each test names its item of the checklist."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from billing.models import CostRule
from dispatch.live_catalogue import live_catalogue
from dispatch.models import SelectionRound
from dispatch.routing.router import route
from dispatch.routing.snapshot import snapshot
from dispatch.supposing import supposed_inputs, typical_request
from tests.console import SignIn
from tests.factories import (
    CostRuleVersionFactory,
    JobFactory,
    PublicModelFactory,
    SelectionRoundFactory,
    SupplyBindingFactory,
    SupplyFactory,
)
from tests.models_world import SLUG, ModelsWorld, make_models_world

ADDRESS = "/console/simulator/"


@pytest.fixture
def world(db: None) -> ModelsWorld:
    return make_models_world()


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def simulated(client: Client, status: int = 200, **query: str) -> Any:
    response = client.get(f"{ADDRESS}?{urlencode({'model': SLUG, **query})}")
    assert response.status_code == status
    return response


def chosen(response: Any) -> str | None:
    selected = response.context["told"].selected
    return selected.supply if selected else None


def test_the_circumstances_of_now_decide_unless_they_are_set_by_hand(
    viewer: Client, world: ModelsWorld
) -> None:
    assert chosen(simulated(viewer)) == "kestrel-hd"
    cases = {
        "osprey-pro": {"health kestrel-hd": "circuit_open"},
        "heron-v3": {"health kestrel-hd": "disabled", "free osprey-pro": "0", "health heron-v3": "healthy"},
        "wren-lite": {"health kestrel-hd": "circuit_open", "health osprey-pro": "circuit_open"},
    }
    for supply, supposed in cases.items():
        assert chosen(simulated(viewer, **supposed)) == supply
    assert chosen(simulated(viewer, **{"priority osprey-pro": "1,000,000"})) == "osprey-pro"
    assert chosen(simulated(viewer, **{"quote kestrel-hd": "99"})) == "osprey-pro"


def test_the_four_steps_add_up_and_say_simulated(viewer: Client, world: ModelsWorld) -> None:
    text = simulated(viewer, duration_s="5").content.decode()
    assert '<span class="mark">Simulated</span> It would go to kestrel-hd' in text
    assert "1 selected + 1 ranked + 4 excluded = 6 candidates" in text


def test_r10_a_simulation_adds_nothing_to_any_table(viewer: Client, world: ModelsWorld) -> None:
    def counts() -> dict[str, int]:
        return {
            model._meta.label: model._default_manager.count()
            for model in apps.get_models()
            if model._meta.app_label in ("catalog", "health", "billing", "dispatch")
        }

    before = counts()
    simulated(viewer, duration_s="5", **{"health kestrel-hd": "recovering-25"})
    assert counts() == before


def test_a_request_that_the_door_would_refuse_is_refused_with_its_field(
    viewer: Client, world: ModelsWorld
) -> None:
    text = simulated(viewer, status=422, duration_s="99").content.decode()
    assert "<title>Error: vid-hd-5s, Simulator" in text
    assert 'href="#r-duration_s"' in text
    for typed in ("long", "500"):
        text = simulated(viewer, status=422, duration_s=typed).content.decode()
        assert f"Give a whole number from 0 to 100. You entered {typed}." in text


def test_prices_of_another_time_are_those_that_will_be_in_force(viewer: Client, world: ModelsWorld) -> None:
    later = timezone.now() + timedelta(days=7)
    rule = CostRule.objects.get(supply__slug="kestrel-hd")
    rule.versions.update(effective_to=later)
    dear = {"mode": "per_second", "currency": "USD", "per_second": "9"}
    CostRuleVersionFactory(rule=rule, number=2, document=dear, effective_from=later)
    assert chosen(simulated(viewer)) == "kestrel-hd"
    at = f"{later + timedelta(hours=1):%Y-%m-%dT%H:%M}"
    assert chosen(simulated(viewer, at=at)) == "osprey-pro"


def test_a_working_copy_and_an_earlier_revision_can_be_asked(sign_in: SignIn, world: ModelsWorld) -> None:
    client = sign_in("operator")
    world.pages()
    assert chosen(simulated(client)) == "kestrel-hd"
    mine = simulated(client, **{"as": "mine"})
    assert chosen(mine) == "osprey-pro"
    earlier = {row.supply: row.priority for row in simulated(client, **{"as": "1"}).context["told"].rows}
    assert earlier["kestrel-hd"] == 900_000


def test_an_image_has_no_word_of_real_persons(viewer: Client, world: ModelsWorld) -> None:
    image = SupplyBindingFactory(
        public_model=PublicModelFactory(slug="picture", image=True), supply=SupplyFactory(image=True)
    )
    text = viewer.get(f"{ADDRESS}?model=picture&size=1024x1024").content.decode()
    assert f"It would go to {image.supply.slug}" in text
    assert "real person" not in text.lower()
    assert "Shows real persons" in simulated(viewer).content.decode()


def recorded_round(world: ModelsWorld) -> SelectionRound:
    """As the dispatcher would have recorded it now."""
    now = timezone.now()
    catalogue = live_catalogue(now)
    request = typical_request(world.model)
    assert request is not None
    inputs = supposed_inputs(catalogue.models[world.model.pk], catalogue, request, now)
    job = JobFactory(public_model=world.model, request=dict(request))
    return SelectionRoundFactory(job=job, snapshot=snapshot(inputs, route(inputs)))


def test_r6_the_snapshot_says_what_would_have_made_another_win_and_the_simulator_agrees(
    viewer: Client, world: ModelsWorld
) -> None:
    row = recorded_round(world)
    page = f"/console/jobs/{row.job.public_id}/rounds/1/"
    assert "What would have made it win:" in viewer.get(page).content.decode()
    tried = 0
    for supply in ("osprey-pro", "heron-v3", "wren-lite"):
        for note, address in viewer.get(f"{page}?why_not={supply}").context["tried"]:
            assert chosen(viewer.get(address)) == supply, str(note)
            tried += 1
    assert tried >= 4
    assert (
        "osprey-pro would have won with priority 910000 or higher"
        in viewer.get(f"{page}?why_not=osprey-pro").content.decode()
    )
    assert (
        "kestrel-hd was the one that was chosen" in viewer.get(f"{page}?why_not=kestrel-hd").content.decode()
    )
    assert "was no candidate" in viewer.get(f"{page}?why_not=nobody").content.decode()
