"""Creates or changes a channel, with the group that shares its real limit."""

from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.credentials import Credential, store_credential
from catalog.endpoints import EndpointError, normalized_endpoint
from catalog.exceptions import CatalogueError
from catalog.facts import ChannelFacts
from catalog.models import CapacityGroup, Channel
from catalog.repository import channel_facts
from catalog.revision import bump_revision, expect_revision, lock_revision


@transaction.atomic
def save_channel(
    facts: ChannelFacts,
    *,
    expected_revision: int | None,
    actor: Actor,
    now: datetime,
    credential: Credential | None = None,
) -> Channel:
    """Saves the channel named by `facts.slug`; `expected_revision` is None to create it. Without
    `credential` the stored one stays. Nothing is written where nothing differs.

    Raises StaleRevision, CatalogueError (another provider, a bad address), VaultError (no master key)."""
    lock_revision()
    row = Channel.objects.filter(slug=facts.slug).first()
    expect_revision(f"channel {facts.slug}", expected_revision, row.revision if row else None)
    if row and credential is None and channel_facts(row) == facts:
        return row
    before = _audited(row) if row else None
    row = _changed(row or Channel(slug=facts.slug, revision=0), facts)
    if credential:
        store_credential(row, credential)
    row.save()
    record(actor, Change("save channel", f"channel:{row.public_id}", before, _audited(row)), now)
    bump_revision()
    return row


def _changed(row: Channel, facts: ChannelFacts) -> Channel:
    if row.provider and row.provider != facts.provider:
        # Attempts under way are polled by the channel's adapter.
        raise CatalogueError("provider", f"a channel keeps its provider ({row.provider}); make a new channel")
    values = asdict(facts)
    expires = values.pop("credential_expires")
    for name, value in values.items():
        setattr(row, name, value)
    row.credential_expires_on = _date(expires)
    row.capacity_group = _group(facts)
    row.revision += 1
    return row


def _date(expires: str | None) -> date | None:
    try:
        return date.fromisoformat(expires) if expires else None
    except ValueError as error:
        raise CatalogueError("credential_expires", f"{expires} is not a date") from error


def _group(facts: ChannelFacts) -> CapacityGroup | None:
    """The group of the channel's endpoint and account, made with the channel's own limit where it is new."""
    try:
        endpoint = normalized_endpoint(facts.base_url)
    except EndpointError as error:
        raise CatalogueError("base_url", str(error)) from error
    if not facts.account:
        return None
    group, _ = CapacityGroup.objects.get_or_create(
        endpoint=endpoint, account=facts.account, defaults={"capacity": facts.concurrency}
    )
    return group


def _audited(row: Channel) -> dict[str, Any]:
    credential = {"credential_hint": row.credential_hint, "credential_reference": row.credential_reference}
    return asdict(channel_facts(row)) | (credential if row.credential else {})
