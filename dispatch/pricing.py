"""What a public model costs its customers: its price by profile, in the customer's currency."""

from collections.abc import Mapping
from typing import Any

from billing.pricing import parse_price, quote_micros
from catalog.models import PublicModel
from catalog.shape import shape_of


class NoPrice(ValueError):
    """The model has a price, but none for this request or in this currency: never taken as free."""


def sale_price_micros(model: PublicModel, request: Mapping[str, Any], profile: str, currency: str) -> int:
    """Micros of `currency`; 0 only where the model has no sale price at all. Raises NoPrice."""
    if model.price is None:
        return 0
    document = model.price.get(profile)
    if document is None:
        raise NoPrice(f"{model.slug} has no price for profile {profile!r}")
    price = parse_price(document, model.modality)
    if price.currency != currency:
        raise NoPrice(f"{model.slug} is sold in {price.currency}, not in {currency}")
    micros = quote_micros(price, shape_of(model.modality, request))
    if micros is None:
        raise NoPrice(f"{model.slug} has no price for this request")
    return micros
