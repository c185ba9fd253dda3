"""The simulator: one request in the circumstances of now, of a recorded moment, or set by hand. It stores
nothing, and its address says everything that was asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.money import MoneyError, micros_of, written
from catalog.document import DocumentError
from catalog.models import PublicModel
from dispatch.drafting.reading import whole_number
from dispatch.errors import InvalidRequest
from dispatch.live_catalogue import live_catalogue, read_catalogue
from dispatch.models import SelectionRound
from dispatch.queries.drafts import Version, edit_of, kept_version, stored_version
from dispatch.requests import defaults_of, normalized
from dispatch.routing.replay import ReplayError
from dispatch.routing.router import route
from dispatch.routing.snapshot import snapshot
from dispatch.routing.supposed import Supposition, supposed
from dispatch.routing.types import HEALTH, Decision, Health, RoutingInput
from dispatch.services.why_not import recorded_inputs
from dispatch.supposing import supposed_inputs, supposed_model
from dispatch.views.access import person, requires
from dispatch.views.explanation import Told, explained
from dispatch.views.models import find_model
from dispatch.views.snapshot_words import unreplayed_said

_HEALTH: Final[
    Mapping[str, tuple[Health, int]]
] = {  # of a form: state, and the successes that a recovery counts
    **{state: (state, 0) for state in HEALTH if state != "recovering"},
    "recovering-25": ("recovering", 2),
    "recovering-50": ("recovering", 3),
    "recovering-75": ("recovering", 4),
}
_COUNTS: Final = (
    "reference_images",
    "reference_videos",
    "reference_audios",
    "duration_s",
    "sample_count",
    "n",
)
_MOST: Final = 100  # seconds, files or results
_FRAMES: Final = ("first_frame", "last_frame")
_FLAGS: Final = ("audio", "real_person", *_FRAMES)
_PLACE: Final = "https://example.com/input"  # stands for a file: only how many there are is decided by


@dataclass(frozen=True)
class Asked:
    """What an address asks for: the input of one selection, or what is wrong with it."""

    inputs: RoutingInput | None = None
    wrong: str = ""
    wrong_field: str = ""


@require_safe
@requires("read")
def simulator(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    query = request.GET
    recorded = _round(query.get("round", ""))
    model = recorded.job.public_model if recorded else _model(query.get("model", ""))
    context: dict[str, Any] = {
        "models": list(PublicModel.objects.order_by("slug").values_list("slug", flat=True)),
        "model": model,
        "recorded": recorded,
        "query": query,
        "as_of": now,
    }
    asked = Asked()
    if model is not None:
        asked = _recorded(recorded, now) if recorded else _supposed(model, query, person(request), now)
        context |= _of_model(model, query, person(request))
    context |= {"wrong": asked.wrong, "wrong_field": asked.wrong_field}
    if asked.inputs is not None:
        context |= _result(asked.inputs, query)
    status = 422 if asked.wrong else 200
    return render(request, "console/simulator.html", context, status=status)


def _model(slug: str) -> PublicModel | None:
    return find_model(slug) if slug else None


def _round(public_id: str) -> SelectionRound | None:
    if not public_id:
        return None
    rows = SelectionRound.objects.select_related("job__public_model__policy")
    found = rows.filter(public_id=public_id).first()
    if found is None:
        raise Http404
    return found


def _recorded(row: SelectionRound, now: datetime) -> Asked:
    try:
        return Asked(recorded_inputs(row, now))
    except ReplayError as error:
        return Asked(wrong=unreplayed_said(str(error)), wrong_field="round")


def _supposed(model: PublicModel, query: QueryDict, user: User, now: datetime) -> Asked:
    try:
        request = _request(model, query)
    except (InvalidRequest, DocumentError) as error:
        return Asked(wrong=str(error), wrong_field=getattr(error, "field", ""))
    at = _time(query.get("at", ""))
    version = _version(model, query.get("as", ""), user)
    catalogue = read_catalogue(at) if at else live_catalogue(now)
    served = supposed_model(model, version.facts, version.parameters, catalogue, at or now)
    inputs = supposed_inputs(served, catalogue, request, now)
    return Asked(replace(inputs, now=at or now))


def _request(model: PublicModel, query: QueryDict) -> Mapping[str, Any]:
    """A normalized request of the model; raises InvalidRequest for one that the door would refuse."""
    known = _defaults(model)
    body: dict[str, Any] = {"prompt": "simulated"}
    for name in known:
        if text := query.get(name, ""):
            body[name] = _value(name, text)
    return normalized(model.modality, body, model.limits, model.degradation, defaults_of(model.parameters))


def _value(name: str, text: str) -> Any:
    if name in _FRAMES:
        return {"url": _PLACE}
    if name in _FLAGS:
        return text == "on"
    if name not in _COUNTS:
        return text
    number = whole_number(text)
    if number is None or number > _MOST:
        said = _("Give a whole number from 0 to %(most)s. You entered %(typed)s.")
        raise InvalidRequest(said % {"most": _MOST, "typed": text}, name)
    return [{"url": _PLACE}] * number if name.startswith("reference_") else number


def _version(model: PublicModel, wanted: str, user: User) -> Version:
    """As it is stored; "mine": my working copy; a number: that revision."""
    if wanted == "mine":
        edit = edit_of(model, user)
        return Version(edit.base.number, edit.draft.facts, edit.draft.parameters)
    kept = kept_version(model, int(wanted)) if wanted.isdecimal() else None
    return kept or stored_version(model)


def _time(text: str) -> datetime | None:
    found = parse_datetime(text) if text else None
    return timezone.make_aware(found) if found and timezone.is_naive(found) else found


def _suppositions(inputs: RoutingInput, query: QueryDict) -> list[Supposition]:
    return [_supposition(it.key, query) for it in inputs.candidates]


def _supposition(key: str, query: QueryDict) -> Supposition:
    health, successes = _HEALTH.get(query.get(f"health {key}", "")) or (None, 0)
    return Supposition(
        key,
        priority=whole_number(query.get(f"priority {key}", "")),
        health=health,
        recovery_successes=successes,
        free=whole_number(query.get(f"free {key}", "")),
        quote=_micros(query.get(f"quote {key}", "")),
    )


def _micros(text: str) -> int | None:
    try:
        return micros_of(text) if text else None
    except (MoneyError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Handle:
    """One candidate with what is supposed of it, as typed, and what the selection found."""

    key: str
    priority: str
    health: str
    free: str
    quote: str


def _of_model(model: PublicModel, query: QueryDict, user: User) -> dict[str, Any]:
    """The request's fields with what the model allows, and the versions that can be asked for."""
    return {
        "fields": [(name, _choices(name, model), query.get(name, "")) for name in _defaults(model)],
        "limits": model.parameters,
        "has_mine": model.working_copies.filter(user=user).exists(),
        "revisions": list(model.revisions.order_by("-number").values_list("number", flat=True)[:50]),
        "health_states": list(_HEALTH),
    }


def _defaults(model: PublicModel) -> tuple[str, ...]:
    if model.modality == "image":
        return ("mode", "size", "n", "reference_images", "degradation")
    return (
        "mode", "duration_s", "resolution", "aspect_ratio", "audio", "reference_images", "reference_videos",
        "reference_audios", "first_frame", "last_frame", "real_person", "billing_mode", "degradation",
    )  # fmt: skip


def _choices(name: str, model: PublicModel) -> list[str]:
    """What a request may say; empty for a number or a yes and no."""
    of_model = {
        "mode": "modes",
        "resolution": "resolutions",
        "aspect_ratio": "aspect_ratios",
        "size": "sizes",
    }
    if name in of_model:
        return list(model.parameters.get(of_model[name], ()))
    fixed = {"billing_mode": ["per_second", "per_request"], "degradation": ["strict", "best_effort"]}
    return fixed.get(name, [])


def _result(inputs: RoutingInput, query: QueryDict) -> dict[str, Any]:
    changed = supposed(inputs, _suppositions(inputs, query))
    decision = route(changed)
    return {
        "told": _told(changed, decision),
        "handles": [_handle(it.key, query) for it in inputs.candidates],
        "any_supposed": any(query.get(name) for name in query if name.partition(" ")[2]),
    }


def _told(inputs: RoutingInput, decision: Decision) -> Told:
    """Explained as a recorded round is; this one is never stored."""
    unsaved = SelectionRound(
        number=1,
        attempt_number=inputs.job.attempt,
        snapshot=snapshot(inputs, decision),
        outcome=decision.outcome,
    )
    return explained(unsaved, [])


def _handle(key: str, query: QueryDict) -> Handle:
    return Handle(key, *(query.get(f"{name} {key}", "") for name in ("priority", "health", "free", "quote")))


def simulator_address(row: SelectionRound, told: Supposition) -> str:
    """Where one change of a recorded round is tried."""
    health = next((name for name, of in _HEALTH.items() if of == (told.health, told.recovery_successes)), "")
    values = {
        "priority": told.priority,
        "health": health or None,
        "free": told.free,
        "quote": None if told.quote is None else written(told.quote),
    }
    query = QueryDict(mutable=True)
    query["round"] = row.public_id
    for name, value in values.items():
        if value is not None:
            query[f"{name} {told.key}"] = str(value)
    return f"{reverse('simulator')}?{query.urlencode()}"
