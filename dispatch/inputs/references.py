"""How a request names uploaded files; pure.

In a normalized request a file is `{"asset", "kind", "size_bytes", "sha256", "url"}`. The url is a stand-in
that every adapter takes for an address, so that a compiled plan and its hash stay the same for ever; what a
provider is given in its place is made when the plan is sent (`dispatch.inputs.delivery`)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

STAND_IN: Final = "https://assets.frameyard.invalid/"  # .invalid: nobody can ever own that name
_WHOLE: Final = re.compile(re.escape(STAND_IN) + r"(ast_[0-9a-z]+)")
LISTS: Final[Mapping[str, str]] = {
    "reference_images": "image",
    "reference_videos": "video",
    "reference_audios": "audio",
}
FRAMES: Final = ("first_frame", "last_frame")


def references_in(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each asset of a request as (path of the field, kind that belongs there, reference)."""
    for name, kind in LISTS.items():
        for number, reference in enumerate(body.get(name) or ()):
            yield f"{name}[{number}]", kind, reference
    for name in FRAMES:
        if body.get(name):
            yield name, "image", body[name]


def with_references(body: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The request with each `{"asset": id}` replaced by what `known` holds for the id."""
    changed = {
        name: [known.get(each.get("asset"), each) for each in body[name]] for name in LISTS if body.get(name)
    }
    changed |= {name: known.get(body[name].get("asset"), body[name]) for name in FRAMES if body.get(name)}
    return {**body, **changed}


def stand_in(asset_id: str) -> str:
    return STAND_IN + asset_id


def stand_ins_in(document: Any) -> set[str]:
    """Ids of the files that a compiled body stands in for, wherever they are in it."""
    if isinstance(document, str):
        found = _WHOLE.fullmatch(document)
        return {found[1]} if found else set()
    if isinstance(document, Mapping):
        return {found for value in document.values() for found in stand_ins_in(value)}
    if isinstance(document, list | tuple):
        return {found for value in document for found in stand_ins_in(value)}
    return set()


def with_addresses(document: Any, addresses: Mapping[str, str]) -> Any:
    """A compiled body with its stand-ins replaced; `addresses` are by id of the file."""
    if isinstance(document, str):
        found = _WHOLE.fullmatch(document)
        return addresses.get(found[1], document) if found else document
    if isinstance(document, Mapping):
        return {key: with_addresses(value, addresses) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [with_addresses(value, addresses) for value in document]
    return document
