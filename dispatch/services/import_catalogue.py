"""Makes the catalogue what a document says: planned and shown first, then applied in one transaction."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from billing.services.publish_price import publish_price
from billing.services.save_customer_group import save_customer_group
from billing.services.set_rate import set_rate
from catalog.audit import Actor
from catalog.credentials import Credential, read_credential
from catalog.exceptions import CatalogueError
from catalog.facts import RuleFacts, model_facts
from catalog.models import Channel, PublicModel, Supply
from catalog.providers.registry import config_problems
from catalog.revision import expect_revision, lock_revision
from catalog.services.publish_capability import publish_capability
from catalog.services.save_channel import save_channel
from catalog.services.save_policy import save_policy
from catalog.services.save_rule import save_rule
from catalog.services.save_supply import save_supply
from catalog.services.set_group_capacity import set_group_capacity
from catalog.vault import VaultError
from dispatch.catalogue.difference import Change, differences, unnamed
from dispatch.catalogue.document import Document, Entry, read_document
from dispatch.catalogue.repository import ENVIRONMENT, channel_from, stored_entries, supply_from
from dispatch.catalogue.resolution import resolve
from dispatch.catalogue.source import InvalidCatalogue
from dispatch.services.publish import Published, publish
from dispatch.services.save_model import save_model
from dispatch.services.withdraw_model import withdraw_model


@dataclass(frozen=True, slots=True)
class Plan:
    """What an import would do; `revision` is the catalogue's, when it was looked at."""

    document: Document
    entries: Entry
    changes: list[Change]
    unnamed: list[str]  # stored entries that the document does not name: they stay
    revision: int
    secrets: Mapping[str, str] = field(repr=False)


@transaction.atomic
def plan_import(text: str, environment: Mapping[str, str], now: datetime) -> Plan:
    """Raises InvalidCatalogue with every problem; changes nothing."""
    document = read_document(text, config_problems)
    revision, stored = lock_revision(), stored_entries(now)
    channels = {row.slug: row for row in Channel.objects.exclude(credential="")}
    resolved = resolve(document, stored, environment, frozenset(channels))
    secrets = {
        slug: secret for slug, secret in resolved.secrets.items() if _differs(channels.get(slug), secret)
    }
    changes = differences(stored, resolved.entries)
    changes += [_rotation(channels[slug], secret) for slug, secret in secrets.items() if slug in channels]
    return Plan(document, resolved.entries, changes, unnamed(stored, resolved.entries), revision, secrets)


def _differs(channel: Channel | None, secret: str) -> bool:
    return channel is None or _opened(channel) != secret


def _rotation(channel: Channel, secret: str) -> Change:
    before = "does not open" if _opened(channel) is None else f"…{channel.credential_hint}"
    path = f"channels.{channel.slug}.credential.secret"
    return Change(("channels", channel.slug), path, before, f"…{Credential(secret).hint}")


def _opened(channel: Channel) -> str | None:
    """None where the stored one does not open: an import is one of the ways to a new one."""
    try:
        return read_credential(channel)
    except VaultError:
        return None


@transaction.atomic
def apply_import(plan: Plan, *, actor: Actor, now: datetime) -> None:
    """All of the plan or nothing. Raises StaleRevision where the catalogue changed since it was planned,
    InvalidCatalogue where an entry cannot be saved or a model does not pass the gates."""
    if not plan.changes:
        return
    expect_revision("the catalogue", plan.revision, lock_revision())
    changed = {change.entry for change in plan.changes}
    for section, save in _SAVERS.items():
        for name, entry in _named(section, plan.entries):
            if (section, name) in changed:
                _saved(plan, f"{section}.{name}", save, name, entry, actor, now)
    for slug, entry in plan.entries["public_models"].items():
        _saved(plan, f"public_models.{slug}", _save_model, slug, entry, actor, now)
    for slug, entry in plan.entries["public_models"].items():
        _publish(plan, slug, entry["publish"], actor, now)


def _named(section: str, entries: Entry) -> list[tuple[str, Any]]:
    if isinstance(entries[section], Mapping):
        return list(entries[section].items())
    keys = {"currency_rates": ("from", "to"), "capacity_groups": ("endpoint", "account")}[section]
    return [(" ".join(entry[key] for key in keys), entry) for entry in entries[section]]


@contextmanager
def _within(part: str) -> Iterator[None]:
    """Names the part of the entry that a refusal is about."""
    try:
        yield
    except CatalogueError as error:
        raise CatalogueError(f"{part}.{error.path}" if error.path else part, error.message) from error


def _saved(plan: Plan, path: str, save: Callable[..., None], *given: Any) -> None:
    try:
        save(plan, *given)
    except CatalogueError as error:
        at = f"{path}.{error.path}" if error.path else path
        raise InvalidCatalogue([plan.document.source.problem(at, error.message)]) from error


def _save_group(_plan: Plan, slug: str, entry: Entry, actor: Actor, now: datetime) -> None:
    save_customer_group(slug, entry["name"], actor=actor, now=now)


def _save_rate(_plan: Plan, _name: str, entry: Entry, actor: Actor, now: datetime) -> None:
    set_rate(entry["from"], entry["to"], Decimal(entry["rate"]), actor=actor, now=now)


def _save_limit(_plan: Plan, _name: str, entry: Entry, actor: Actor, now: datetime) -> None:
    set_group_capacity(entry["endpoint"], entry["account"], entry["capacity"], actor=actor, now=now)


def _save_channel(plan: Plan, slug: str, entry: Entry, actor: Actor, now: datetime) -> None:
    row = Channel.objects.filter(slug=slug).first()
    reference = ENVIRONMENT + entry["credential"]["env"] if entry.get("credential") else ""
    secret = plan.secrets.get(slug)
    if row and secret is None and reference != row.credential_reference:
        secret = read_credential(row)  # the same secret under another name
    save_channel(
        channel_from(slug, entry),
        expected_revision=row.revision if row else None,
        credential=Credential(secret, reference) if secret else None,
        actor=actor,
        now=now,
    )


def _save_supply(_plan: Plan, slug: str, entry: Entry, actor: Actor, now: datetime) -> None:
    row = Supply.objects.filter(slug=slug).first()
    expected = row.revision if row else None
    row = save_supply(supply_from(slug, entry), expected_revision=expected, actor=actor, now=now)
    if entry["capability"]:
        with _within("capability"):
            publish_capability(row, **entry["capability"], actor=actor, now=now)
    with _within("price"):
        publish_price(row, entry["price"], actor=actor, now=now)


def _save_policy(_plan: Plan, name: str, parameters: Entry, actor: Actor, now: datetime) -> None:
    save_policy(name, parameters, actor=actor, now=now)


def _save_rule(_plan: Plan, slug: str, entry: Entry, actor: Actor, now: datetime) -> None:
    save_rule(
        RuleFacts(slug=slug, **{**entry, "drop_inputs": tuple(entry["drop_inputs"])}), actor=actor, now=now
    )


def _save_model(_plan: Plan, slug: str, entry: Entry, actor: Actor, now: datetime) -> None:
    """Changed or not: a model whose policy has a new version is saved with it."""
    row = PublicModel.objects.filter(slug=slug).first()
    facts = model_facts(slug, {name: value for name, value in entry.items() if name != "publish"})
    save_model(
        facts, expected_revision=row.revision if row else None, actor=actor, now=now, note="catalogue import"
    )


def _publish(plan: Plan, slug: str, wanted: bool, actor: Actor, now: datetime) -> None:
    model = PublicModel.objects.get(slug=slug)
    if not wanted:
        withdraw_model(model, actor=actor, now=now)
    elif not model.published:
        result = publish(model, actor=actor, now=now)
        if not isinstance(result, Published):
            path = f"public_models.{slug}.publish"
            raise InvalidCatalogue([plan.document.source.problem(path, str(gate)) for gate in result.failed])


# In an order in which each finds what it refers to; public models follow, since they refer to all.
_SAVERS: Mapping[str, Callable[..., None]] = {
    "customer_groups": _save_group,
    "currency_rates": _save_rate,
    "capacity_groups": _save_limit,
    "channels": _save_channel,
    "supplies": _save_supply,
    "policies": _save_policy,
    "degradation_rules": _save_rule,
}
