"""The list of public models, and one model's page."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.console import SignIn
from tests.factories import PublicModelFactory, SupplyBindingFactory, SupplyFactory
from tests.models_world import BASE, SLUG, ModelsWorld


def test_the_list_says_how_each_model_stands_and_is_supplied(li: Client) -> None:
    text = li.get("/console/models/").content.decode()
    assert "Saved, not published" in text
    assert "One supply only: nothing to switch to" in text
    line = next(each for each in li.get("/console/models/").context["lines"] if each.model.slug == SLUG)
    assert [(each.tier, each.usable, each.bound) for each in line.supplied] == [
        ("exact", 2, 3),
        ("fallback", 2, 2),
        ("degraded", 1, 1),
    ]
    assert (line.state, line.waiting, line.published_by) == ("published", 1, "wang.l")


def test_g16_without_any_model_the_list_says_what_it_is_for(sign_in: SignIn) -> None:
    assert "No public model yet" in sign_in("viewer").get("/console/models/").content.decode()
    assert (
        "There is none to ask" in sign_in("viewer", username="w").get("/console/simulator/").content.decode()
    )


def test_p1_the_list_asks_as_many_questions_for_many_models_as_for_two(li: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            li.get("/console/models/")
        return len(asked)

    li.get("/console/models/")
    few = queries()
    for _ in range(5):
        SupplyBindingFactory(public_model=PublicModelFactory())
    assert queries() == few


def test_a_model_shows_its_order_beside_the_numbers_and_the_worse_health_with_its_origin(li: Client) -> None:
    response = li.get(BASE)
    tiers = {tier.tier: tier.bindings for tier in response.context["tiers"]}
    assert [(each.facts.supply, each.placed.position) for each in tiers["exact"]] == [
        ("kestrel-hd", 1),
        ("osprey-pro", 2),
        ("heron-v3", 3),
    ]
    assert (tiers["exact"][2].circuit.state, tiers["exact"][2].circuit.place) == ("circuit_open", "channel")
    text = response.content.decode()
    assert 'from channel, <span class="nowrap">12 min' in text, "a number stays beside its unit"
    assert "Recovering 50 %" in text
    assert "6 in use, 1 unknown, 1 free of 8 slots" in text
    assert "In production, with 2 exact supplies that can take work." in text
    assert "within one, the higher priority number is tried first" in text


def test_a_supply_without_capability_or_price_is_shown_and_never_placed(
    li: Client, world: ModelsWorld
) -> None:
    bare = SupplyFactory(slug="bare", price=False)
    bare.capability_version = None
    bare.save()
    SupplyBindingFactory(public_model=world.model, supply=bare)
    SupplyBindingFactory(public_model=world.model, supply=SupplyFactory(slug="unpriced", price=False))
    response = li.get(BASE)
    exact = {each.facts.supply: each for each in response.context["tiers"][0].bindings}
    assert exact["bare"].placed is None
    assert exact["unpriced"].placed.position is None
    assert "none in force" in response.content.decode()
    assert "no price" in response.content.decode()
