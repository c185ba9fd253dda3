"""Which model takes a request that names none."""

from fractions import Fraction
from itertools import permutations

import pytest

from dispatch.routing.auto import Choice, Offer, choose


def chosen(slug: str, tier: str = "exact", cost: int | Fraction | None = 100) -> Offer:
    return Offer(slug, "chosen", tier, None if cost is None else Fraction(cost))  # type: ignore[arg-type]


def waiting(slug: str) -> Offer:
    return Offer(slug, "waiting_capacity", waits=True)


def hopeless(slug: str) -> Offer:
    return Offer(slug, "no_candidate")


@pytest.mark.parametrize(
    ("offers", "choice"),
    [
        ([chosen("b", cost=1), chosen("a", cost=2)], Choice("b", "lowest_cost")),
        ([chosen("a", "fallback", 1), chosen("b", "exact", 900)], Choice("b", "best_tier")),
        ([chosen("a", "degraded", 1), chosen("b", "fallback", 900)], Choice("b", "best_tier")),
        ([chosen("b"), chosen("a")], Choice("a", "slug")),
        ([chosen("a", cost=Fraction(100, 3)), chosen("b", cost=33)], Choice("b", "lowest_cost")),
        ([chosen("a", cost=None), chosen("b", cost=10**12)], Choice("b", "lowest_cost")),
        ([chosen("a", cost=None), chosen("b", cost=None)], Choice("a", "slug")),
        ([waiting("a"), chosen("b", "degraded", 10**9)], Choice("b", "only_offer")),
        ([hopeless("a"), waiting("c"), waiting("b")], Choice("b", "first_that_waits")),
        ([hopeless("b"), hopeless("a")], Choice("a", "no_supply")),
        ([], None),
    ],
)
def test_tier_then_cost_then_slug_decide_whatever_the_order_of_the_offers(
    offers: list[Offer], choice: Choice | None
) -> None:
    assert {choose(order) for order in permutations(offers)} == {choice}
