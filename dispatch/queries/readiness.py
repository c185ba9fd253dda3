"""What a supply still needs before a public model can be served by it, and which models it would fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from billing.repository import price_in_force
from catalog.capability import lacking, parse_capability
from catalog.document import DocumentError
from catalog.models import AdminState, PublicModel, Supply, SupplyBinding
from dispatch.gate_evidence import examples_of
from dispatch.models import TrialCall, TrialState

TRIED_WITHIN: Final = timedelta(hours=24)
TRIALS_SHOWN: Final = 10
_ANSWERED_WITHIN: Final = timedelta(minutes=10)  # longer than any call may last
_TRIED: Final[Mapping[str, str]] = {  # what a call says of the supply
    TrialState.SUCCEEDED: "done",
    TrialState.ASKED: "under_way",
    TrialState.SENDING: "under_way",
    TrialState.ACCEPTED: "under_way",
    TrialState.FAILED: "failed",
    TrialState.REFUSED: "failed",
    TrialState.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class Need:
    """`code` names what is needed; `page` the name of the URL where it is seen to. `state`: done, missing,
    or of a call that tried it under_way, failed, unknown."""

    code: str
    state: str
    page: str

    @property
    def is_met(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True, slots=True)
class ModelFit:
    """How many of a model's example requests the supply could execute."""

    model: PublicModel
    fits: int
    examples: int
    is_bound: bool


def find_supply(slug: str) -> Supply | None:
    return Supply.objects.select_related("channel", "capability_version").filter(slug=slug).first()


def needs_of(supply: Supply, now: datetime) -> Sequence[Need]:
    """In the order in which they are met."""
    *once, bound = _lasting_needs(supply, now)
    return [*once, Need("tried", _tried(supply, now), "try_supply"), bound]


def is_in_use(supply: Supply, now: datetime) -> bool:
    """Whether nothing is left to be done for it; that it was tried lately is no part of that."""
    return all(need.is_met for need in _lasting_needs(supply, now))


def _lasting_needs(supply: Supply, now: datetime) -> Sequence[Need]:
    is_on = AdminState.DISABLED not in (supply.state, supply.channel.state)
    bound = SupplyBinding.objects.filter(supply=supply, enabled=True)
    return [
        _need("capability", supply.capability_version_id is not None, "supply"),
        _need("slots", supply.concurrency > 0, "limit"),
        _need("price", price_in_force(supply, now) is not None, "new_price"),
        _need("credential", bool(supply.channel.credential), "channel"),
        _need("switched_on", is_on, "channel"),
        _need("bound", bound.exists(), "edit_model"),
    ]


def _need(code: str, is_met: bool, page: str) -> Need:
    return Need(code, "done" if is_met else "missing", page)


def _tried(supply: Supply, now: datetime) -> str:
    """Only a call that succeeded has tried it; else the newest one tells how far that is."""
    lately = TrialCall.objects.filter(supply=supply, asked_at__gte=now - TRIED_WITHIN)
    if lately.filter(state=TrialState.SUCCEEDED).exists():
        return "done"
    newest = lately.order_by("-id").first()
    if newest is None:
        return "missing"
    return "unknown" if is_lost(newest, now) else _TRIED[newest.state]


def trials_of(supply: Supply) -> Sequence[TrialCall]:
    """The newest first."""
    return list(TrialCall.objects.filter(supply=supply).order_by("-id")[:TRIALS_SHOWN])


def is_lost(trial: TrialCall, now: datetime) -> bool:
    """Whether its worker ended before it could say what the provider answered."""
    sent_at = trial.sent_at
    return trial.state == TrialState.SENDING and sent_at is not None and now > sent_at + _ANSWERED_WITHIN


def fits_of(supply: Supply) -> Sequence[ModelFit]:
    """Every public model of its modality, by slug. Two queries."""
    models = PublicModel.objects.filter(modality=supply.modality).select_related("policy").order_by("slug")
    bound = set(SupplyBinding.objects.filter(supply=supply).values_list("public_model", flat=True))
    return [_fit(supply, model, model.pk in bound) for model in models]


def _fit(supply: Supply, model: PublicModel, is_bound: bool) -> ModelFit:
    shapes = [example.shape for example, _request in examples_of(model) if example.shape is not None]
    version = supply.capability_version
    try:
        capability = parse_capability(supply.modality, version.document) if version else None
    except DocumentError:
        capability = None
    fits = sum(capability is not None and not lacking(capability, shape) for shape in shapes)
    return ModelFit(model, fits, len(shapes), is_bound)
