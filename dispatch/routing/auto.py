"""Routing mode `auto`: which of the models that a customer may use takes a request; pure.

Every permitted model makes an offer, in the order of slugs; the best tier wins, then the lowest expected
cost, then the slug. The job is bound to that model for good."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dispatch.routing.types import Outcome, Tier

TIERS: tuple[Tier, ...] = ("exact", "fallback", "degraded")

type Why = Literal["only_offer", "best_tier", "lowest_cost", "slug", "first_that_waits", "no_supply"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What one model would do with the request right now.

    `expected_cost` is exact and in one currency for all offers; None where no rate leads there: such an
    offer is as dear as can be. `waits`: nobody was chosen, and that may change."""

    slug: str
    outcome: Outcome
    tier: Tier | None = None
    expected_cost: Fraction | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """`why` names the first thing in which the chosen offer beats the next best."""

    slug: str
    why: Why


def choose(offers: Iterable[Offer]) -> Choice | None:
    """None without any offer. Where nobody can take the request, the first that waits; else the first of
    all, with which the job ends as `no_supply`."""
    in_order = sorted(offers, key=lambda offer: offer.slug)
    chosen = sorted((offer for offer in in_order if offer.outcome == "chosen"), key=_rank)
    if chosen:
        return Choice(chosen[0].slug, _why(chosen))
    waiting = next((offer for offer in in_order if offer.waits), None)
    if waiting is not None:
        return Choice(waiting.slug, "first_that_waits")
    return Choice(in_order[0].slug, "no_supply") if in_order else None


def _rank(offer: Offer) -> tuple[int, bool, Fraction, str]:
    assert offer.tier is not None, f"{offer.slug} chose a supply of no tier"  # noqa: S101
    cost = offer.expected_cost
    return TIERS.index(offer.tier), cost is None, cost or Fraction(0), offer.slug


def _why(ranked: list[Offer]) -> Why:
    if len(ranked) == 1:
        return "only_offer"
    best, second = ranked[:2]
    if best.tier != second.tier:
        return "best_tier"
    return "lowest_cost" if best.expected_cost != second.expected_cost else "slug"
