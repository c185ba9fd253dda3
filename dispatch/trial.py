"""The call that tries a supply, made from what an operator chose: normalized, compiled and quoted before
anything is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from billing.pricing import parse_price, quote_micros
from billing.repository import price_in_force
from catalog.capability import parse_capability
from catalog.document import DocumentError
from catalog.hashing import document_hash
from catalog.models import AdminState, Supply
from catalog.providers.registry import adapter_for
from catalog.providers.types import CompileError, SupplyTarget
from catalog.shape import shape_of
from dispatch.errors import InvalidRequest
from dispatch.held_channels import is_held
from dispatch.models import TrialCall
from dispatch.requests import defaults_of, normalized

# Those that need at most one picture by its address.
MODES: Final = ("text_to_video", "image_to_video", "text_to_image", "image_edit")
_PICTURE: Final = {"image_to_video": "first_frame", "image_edit": "reference_images"}
FIELDS: Final = ("mode", "prompt", "duration_s", "resolution", "aspect_ratio", "size", "audio", "image")
PROMPT: Final = "A small boat on a calm lake at sunrise."


@dataclass(frozen=True, slots=True)
class Unready:
    """Why it can't be tried: a stable code, the field that it is about or "", words in English."""

    code: str
    field: str = ""
    said: str = ""


def modes_of(supply: Supply) -> list[str]:
    version = supply.capability_version
    return [mode for mode in MODES if version and mode in version.document["modes"]]


def draft_trial(supply: Supply, typed: Mapping[str, str], now: datetime) -> TrialCall | Unready:
    """An unsaved call. `supply` comes with its channel and its capability version."""
    version, price = supply.capability_version, price_in_force(supply, now)
    if version is None:
        return Unready("no_capability")
    if AdminState.DISABLED in (supply.state, supply.channel.state):
        return Unready("switched_off")
    if is_held(supply.channel.slug):
        return Unready("held_back")
    if not supply.channel.credential:
        return Unready("no_credential")
    if price is None:
        return Unready("no_price")
    try:
        limits = parse_capability(supply.modality, version.document)
        body, defaults = _body(typed), defaults_of(version.document)
        request = normalized(supply.modality, body, limits, "strict", defaults)
        quote = quote_micros(parse_price(price.document, supply.modality), shape_of(supply.modality, request))
    except InvalidRequest as error:
        return Unready("bad_request", error.field or "", str(error))
    except DocumentError as error:
        return Unready("bad_document", "", str(error))
    if quote is None:
        return Unready("not_priced")
    target = SupplyTarget(supply.provider_model, supply.model_version, version.document, supply.modality)
    plan = adapter_for(supply.channel.provider).compile(request, target)
    if isinstance(plan, CompileError):
        return Unready("does_not_compile", "", "; ".join(plan.reasons))
    return TrialCall(
        supply=supply,
        capability_version=version,
        cost_rule_version=price,
        request=request,
        compile_plan=plan.as_json(),
        quote_micros=quote,
        quote_currency=price.currency,
    )


def _body(typed: Mapping[str, str]) -> dict[str, Any]:
    """As a customer would post it. Raises InvalidRequest."""
    mode = typed.get("mode", "")
    body: dict[str, Any] = {"mode": mode, "prompt": typed.get("prompt", "")}
    body |= {name: typed[name] for name in ("resolution", "aspect_ratio", "size") if typed.get(name)}
    if typed.get("duration_s"):
        body["duration_s"] = _seconds(typed["duration_s"])
    if typed.get("audio") == "1":
        body["audio"] = True
    if mode in _PICTURE:
        if not typed.get("image", "").startswith(("https://", "http://")):
            raise InvalidRequest("This mode needs the address of a picture.", "image")
        picture = {"url": typed["image"]}
        body[_PICTURE[mode]] = [picture] if _PICTURE[mode] == "reference_images" else picture
    return body


def _seconds(text: str) -> int | float:
    try:
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError) as error:
        raise InvalidRequest("A length is a number of seconds.", "duration_s") from error


def mark_of(trial: TrialCall) -> int:
    """What was looked at before it was confirmed: the native request, and what it costs."""
    told = {"plan": trial.compile_plan, "micros": trial.quote_micros, "currency": trial.quote_currency}
    return int(document_hash(told)[:12], 16)
