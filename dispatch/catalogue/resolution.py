"""A document made concrete for one installation: its addresses, secrets, limits and publications; pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.endpoints import EndpointError, normalized_endpoint
from dispatch.catalogue.document import Complaint, Document, Entry
from dispatch.catalogue.source import InvalidCatalogue

_LONGEST_ADDRESS = 300  # characters


@dataclass(frozen=True, slots=True)
class Resolved:
    """`entries` have the form of the stored ones; `secrets` by channel, for those whose variable is set."""

    entries: Entry
    secrets: Mapping[str, str] = field(repr=False)


def resolve(
    document: Document, stored: Entry, environment: Mapping[str, str], sealed: frozenset[str]
) -> Resolved:
    """`sealed` are the channels that have a credential already. Raises InvalidCatalogue where a variable
    is not set, an address is none, or a limit belongs to no channel."""
    entries, problems = dict(document.entries), []
    entries["channels"] = {slug: dict(channel) for slug, channel in entries["channels"].items()}
    entries["supplies"] = {slug: dict(supply) for slug, supply in entries["supplies"].items()}
    entries["capacity_groups"] = [dict(group) for group in entries["capacity_groups"]]
    for complaint in _resolve_addresses(entries, environment):
        problems.append(document.source.problem(*complaint))
    if problems:
        raise InvalidCatalogue(problems)
    secrets = _secrets(entries, environment)
    complaints = [*_credential_complaints(entries, secrets, sealed), *_group_complaints(entries)]
    if complaints:
        raise InvalidCatalogue([document.source.problem(*complaint) for complaint in complaints])
    _keep_what_is_left_out(entries, stored)
    entries["capacity_groups"] += _unlisted_groups(entries, stored)
    entries["public_models"] = _with_publication(entries, stored)
    return Resolved(entries, secrets)


def _resolve_addresses(entries: Entry, environment: Mapping[str, str]) -> Iterator[Complaint]:
    """Puts texts in place of references; what cannot be one is yielded."""
    for slug, channel in entries["channels"].items():
        path = f"channels.{slug}.base_url"
        try:
            channel["base_url"] = _address(channel["base_url"], environment)
            normalized_endpoint(channel["base_url"])
        except EndpointError as error:
            yield path, str(error)
    for index, group in enumerate(entries["capacity_groups"]):
        try:
            group["endpoint"] = normalized_endpoint(_address(group["endpoint"], environment))
        except EndpointError as error:
            yield f"capacity_groups[{index}].endpoint", str(error)


def _address(written: Any, environment: Mapping[str, str]) -> str:
    if isinstance(written, str):
        return written
    value = environment.get(written["env"], "")
    if not value:
        raise EndpointError(f"the environment variable {written['env']} is not set")
    address = value.rstrip("/") + written.get("path", "")
    if len(address) > _LONGEST_ADDRESS:
        raise EndpointError(f"is longer than {_LONGEST_ADDRESS} characters")
    return address


def _secrets(entries: Entry, environment: Mapping[str, str]) -> dict[str, str]:
    return {
        slug: secret
        for slug, channel in entries["channels"].items()
        if channel.get("credential") and (secret := environment.get(channel["credential"]["env"], "").strip())
    }


def _credential_complaints(
    entries: Entry, secrets: Mapping[str, str], sealed: frozenset[str]
) -> Iterator[Complaint]:
    for slug, channel in entries["channels"].items():
        if channel.get("credential") and slug not in secrets and slug not in sealed:
            path = f"channels.{slug}.credential.env"
            yield path, f"the environment variable {channel['credential']['env']} is not set"


def _group_complaints(entries: Entry) -> Iterator[Complaint]:
    real, listed = _largest_concurrency(entries), set()
    for index, group in enumerate(entries["capacity_groups"]):
        key = (group["endpoint"], group["account"])
        if key not in real:
            yield f"capacity_groups[{index}]", "no channel of this document has that endpoint and account"
        if key in listed:
            yield f"capacity_groups[{index}]", "is there already"
        listed.add(key)


def _keep_what_is_left_out(entries: Entry, stored: Entry) -> None:
    """A document may be silent about a credential and a capability: the stored ones stay."""
    for slug, channel in entries["channels"].items():
        present = stored["channels"].get(slug, {}).get("credential")
        if present and "credential" not in channel:
            channel["credential"] = present
    for slug, supply in entries["supplies"].items():
        if supply["capability"] is None:
            supply["capability"] = stored["supplies"].get(slug, {}).get("capability")


def _largest_concurrency(entries: Entry) -> dict[tuple[str, str], int]:
    """By endpoint and account, in slots: what a group's limit is at first."""
    largest: dict[tuple[str, str], int] = {}
    for channel in entries["channels"].values():
        if channel["account"]:
            key = (normalized_endpoint(channel["base_url"]), channel["account"])
            largest[key] = max(largest.get(key, 0), channel["concurrency"])
    return largest


def _unlisted_groups(entries: Entry, stored: Entry) -> Iterator[Entry]:
    listed = {(group["endpoint"], group["account"]) for group in entries["capacity_groups"]}
    limits = {(group["endpoint"], group["account"]): group["capacity"] for group in stored["capacity_groups"]}
    for key, largest in _largest_concurrency(entries).items():
        if key not in listed:
            yield {"endpoint": key[0], "account": key[1], "capacity": limits.get(key, largest)}


def _with_publication(entries: Entry, stored: Entry) -> Entry:
    """Where the document does not say: what nothing touches stays published, all else waits for it."""
    models = {}
    for slug, model in entries["public_models"].items():
        publish = model["publish"]
        if publish is None:
            publish = _is_untouched(slug, entries, stored) and stored["public_models"][slug]["publish"]
        models[slug] = {**model, "publish": publish}
    return models


def _is_untouched(slug: str, entries: Entry, stored: Entry) -> bool:
    new, old = entries["public_models"][slug], stored["public_models"].get(slug)
    if old is None or {**new, "publish": None} != {**old, "publish": None}:
        return False
    rules = [binding["rule"] for binding in new["bindings"] if binding["rule"]]
    parts = [("policies", new["policy"]), *(("degradation_rules", rule) for rule in rules)]
    return all(entries[section][name] == stored[section].get(name) for section, name in parts)
