"""Which public model routing mode `auto` picked for a job, and what every other would have done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from dispatch.models import Job


@dataclass(frozen=True, slots=True)
class OfferLine:
    """What one permitted model would have done with the request. `cost_micros` in the choice's currency."""

    model: str
    is_chosen: bool
    outcome: str = ""  # of its selection, or "" where it refused
    supply: str = ""
    tier: str = ""
    cost_micros: int | None = None
    waits: bool = False
    refused: str = ""  # as it was said, English


@dataclass(frozen=True)
class ModelChoice:
    chosen: str
    why: str  # stable code
    currency: str
    at: datetime
    offers: Sequence[OfferLine]


def model_choice_of(job: Job) -> ModelChoice | None:
    """None: the customer named the model."""
    told = job.model_choice
    if not told:
        return None
    return ModelChoice(
        chosen=told["chosen"],
        why=told["why"],
        currency=told["currency"],
        at=datetime.fromisoformat(told["at"]),
        offers=[_line(slug, offer, slug == told["chosen"]) for slug, offer in told["models"].items()],
    )


def _line(slug: str, offer: Mapping[str, Any], is_chosen: bool) -> OfferLine:
    if "refused" in offer:
        return OfferLine(slug, is_chosen, refused=offer["refused"])
    decision, cost = offer["decision"], offer["expected_cost"]
    supply, _at, _tier = (decision["chosen"] or "").partition("@")
    return OfferLine(
        model=slug,
        is_chosen=is_chosen,
        outcome=decision["outcome"],
        supply=supply,
        tier=(decision["layer"] or {}).get("tier") or "",
        cost_micros=None if cost is None else round(Fraction(cost)),
        waits=offer["waits"],
    )
