"""A supply that somebody adds, as typed in four steps, and what it says; pure.

Every text stays as it was typed. What cannot be read is named by its field, with a stable code."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from catalog.capability import contradictions, parse_capability
from catalog.document import DocumentError
from catalog.facts import SupplyFacts
from catalog.shape import IMAGE_MODES, VIDEO_MODES
from dispatch import price_form
from dispatch.price_form import FormError

type Typed = Mapping[str, str]

STEPS: Final = ("what", "can", "slots", "cost")
MODES: Final[Mapping[str, tuple[str, ...]]] = {"video": VIDEO_MODES, "image": IMAGE_MODES}
REAL_PERSON: Final = ("allowed", "restricted", "denied")
LIFECYCLES: Final = ("preview", "stable", "deprecated")
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "what": (
        *("channel", "slug", "modality", "provider_model", "model_family", "model_version"),
        *("lifecycle", "sunset"),
    ),
    "can": (
        *("label", "modes", "durations_s", "resolutions", "aspect_ratios", "sizes", "audio"),
        *("max_images", "max_videos", "max_audios", "max_n", "real_person_policy", "more"),
    ),
    "slots": ("concurrency", "unknown_limit"),
    "cost": ("mode", "currency", "unit", "min_s", "step_s", "per_credit", "free_on_failure"),
}
START: Final[Mapping[str, Typed]] = {  # what an untouched step shows
    "what": {"modality": "video", "lifecycle": "preview"},
    "can": {
        "label": "v1",
        "max_images": "0",
        "max_videos": "0",
        "max_audios": "0",
        "max_n": "1",
        "real_person_policy": "denied",
    },
    "slots": {"concurrency": "1"},
    "cost": {"mode": "per_second", "currency": "USD", "free_on_failure": "1"},
}
MOST_SLOTS: Final = 1_000_000
_LONGEST: Final = 400
_LONGEST_MORE: Final = 8_000
_SLUG: Final = re.compile(r"[-a-zA-Z0-9_]{1,80}")
_RESERVED: Final = "new"  # the address of this form
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Read:
    """What a step says, and what is wrong with it: a code by field. `said`: about a document, in English."""

    values: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    said: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalogue has already, by slug."""

    channels: Collection[str]
    supplies: Collection[str]


def kept(step: str, form: Mapping[str, str], lists: Callable[[str], list[str]]) -> dict[str, str]:
    """Of a posted form, the texts of one step; `lists` gives all values of a name."""
    told = {name: form.get(name, "").strip() for name in FIELDS[step]}
    if step == "can":
        told["modes"] = ", ".join(lists("modes"))
    if step == "cost":
        told |= {name: str(value).strip() for name, value in form.items() if _is_row(name)}
    return {name: text[: _LONGEST_MORE if name == "more" else _LONGEST] for name, text in told.items()}


def _is_row(name: str) -> bool:
    return re.fullmatch(r"(bracket|multiplier)-\d{1,2}-\w{1,6}", name) is not None


def read_what(typed: Typed, known: Known) -> Read:
    faults = {}
    if typed.get("channel") not in known.channels:
        faults["channel"] = "choose"
    slug = typed.get("slug", "")
    if not _SLUG.fullmatch(slug) or slug == _RESERVED:
        faults["slug"] = "bad_slug"
    elif slug in known.supplies:
        faults["slug"] = "slug_taken"
    if typed.get("modality") not in MODES:
        faults["modality"] = "choose"
    faults |= {name: "missing" for name in ("provider_model", "model_family") if not typed.get(name)}
    if typed.get("lifecycle") not in LIFECYCLES:
        faults["lifecycle"] = "choose"
    if typed.get("sunset") and not _is_date(typed["sunset"]):
        faults["sunset"] = "bad_date"
    return Read({name: typed.get(name, "") for name in FIELDS["what"]}, faults)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_can(typed: Typed, modality: str) -> Read:
    """Values: `label`, `document` in the form of catalog.capability, `real_person_policy` of a video."""
    faults: dict[str, str] = {} if typed.get("label") else {"label": "missing"}
    modes = [mode for mode in _listed(typed.get("modes", "")) if mode in MODES[modality]]
    if not modes:
        faults["modes"] = "no_modes"
    document: dict[str, Any] = {"modes": modes}
    reads = _VIDEO if modality == "video" else _IMAGE
    for name, read in reads.items():
        value = read(typed.get(name, ""))
        if value is None:
            faults[name] = _CODES.get(name, "bad_number")
        document[name] = value
    real_person = typed.get("real_person_policy") if modality == "video" else None
    if modality == "video" and real_person not in REAL_PERSON:
        faults["real_person_policy"] = "choose"
    more = _more(typed.get("more", ""))
    if more is None:
        faults["more"] = "bad_json"
    said = ""
    if not faults:
        document |= more or {}
        fault, said = _against_rules(modality, document)
        faults |= fault
    told = {"label": typed.get("label", ""), "document": document, "real_person_policy": real_person}
    return Read(told, faults, said)


def _listed(text: str) -> list[str]:
    return [each for each in (part.strip() for part in re.split(r"[,\s;]+", text)) if each]


def _texts(text: str) -> list[str] | None:
    return list(dict.fromkeys(_listed(text))) or None


def _durations(text: str) -> Any:
    """`5, 10` are these lengths, `4-15` any from the first to the second."""
    if span := _SPAN.fullmatch(text.strip()):
        least, most = _decimal(span[1]), _decimal(span[2])
        return {"min": least, "max": most} if 0 < least <= most else None
    try:
        lengths = [_decimal(each) for each in _listed(text)]
    except (ValueError, OverflowError):
        return None
    return lengths if lengths and min(lengths) > 0 else None


def _decimal(text: str) -> int | float:
    number = float(text)
    return int(number) if number == int(number) else number


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _results(text: str) -> int | None:
    return _count(text) or None


def _more(text: str) -> dict[str, Any] | None:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


_VIDEO: Final[Mapping[str, Callable[[str], Any]]] = {
    "durations_s": _durations,
    "resolutions": _texts,
    "aspect_ratios": _texts,
    "max_images": _count,
    "max_videos": _count,
    "max_audios": _count,
    "audio": lambda text: text == "1",
}
_IMAGE: Final[Mapping[str, Callable[[str], Any]]] = {
    "sizes": _texts,
    "max_n": _results,
    "max_images": _count,
}
_CODES: Final = {
    "durations_s": "bad_durations",
    "resolutions": "empty_list",
    "aspect_ratios": "empty_list",
    "sizes": "empty_list",
}


def _against_rules(modality: str, document: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    try:
        capability = parse_capability(modality, document)
    except DocumentError as error:
        name = re.split(r"[.\[]", error.path)[0]
        return {name if name in FIELDS["can"] else "more": "bad_document"}, str(error)
    against = contradictions(capability)
    return ({"more": "contradiction"}, "; ".join(against)) if against else ({}, "")


def read_slots(typed: Typed) -> Read:
    faults = {}
    concurrency, unknown = _count(typed.get("concurrency", "")), typed.get("unknown_limit", "")
    if not concurrency or concurrency > MOST_SLOTS:
        faults["concurrency"] = "no_limit"
    if unknown and _count(unknown) is None:
        faults["unknown_limit"] = "bad_number"
    limit = _count(unknown) if unknown else None
    return Read({"concurrency": concurrency, "unknown_limit": limit}, faults)


def read_cost(typed: Typed, modality: str) -> Read:
    """Values: `document`, in the form of billing.pricing."""
    try:
        return Read({"document": price_form.document_of(price_form.texts_posted(typed), modality)})
    except FormError as error:
        return Read({}, {error.field: "bad_price"})


def supply_facts_of(what: Mapping[str, Any], can: Mapping[str, Any], slots: Mapping[str, Any]) -> SupplyFacts:
    """Of three steps that have no fault."""
    return SupplyFacts(
        slug=what["slug"],
        channel=what["channel"],
        modality=what["modality"],
        provider_model=what["provider_model"],
        model_family=what["model_family"],
        model_version=what["model_version"],
        concurrency=slots["concurrency"],
        unknown_limit=slots["unknown_limit"],
        real_person_policy=can["real_person_policy"],
        lifecycle=what["lifecycle"],
        sunset=what["sunset"] or None,
    )
