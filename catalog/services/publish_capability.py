"""Makes a capability document the one in force; the former one ends, and is never edited."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.hashing import document_hash
from catalog.models import CapabilityVersion, Supply
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def publish_capability(
    supply: Supply, label: str, document: Mapping[str, Any], *, actor: Actor, now: datetime
) -> CapabilityVersion:
    """The version of that label and document, in force from `now`; the present one where it is the same.

    Raises CatalogueError where the label was used before, or the present version is not yet in force."""
    lock_revision()
    supply = Supply.objects.select_related("capability_version").get(pk=supply.pk)
    present = supply.capability_version
    if present and (present.label, present.document_hash) == (label, document_hash(document)):
        return present
    if supply.capability_versions.filter(label=label).exists():
        raise CatalogueError("label", f"{label!r} already names a version; give this one a new label")
    if present:
        _end(present, now)
    version = _published(supply, label, document, actor, now)
    before = {"label": present.label, "document": present.document} if present else None
    after = {"label": label, "document": document}
    record(actor, Change("publish capability", f"supply:{supply.public_id}", before, after), now)
    bump_revision()
    return version


def _end(version: CapabilityVersion, now: datetime) -> None:
    if version.effective_from >= now:
        raise CatalogueError(
            "label", f"{version.label!r} began at {version.effective_from}: a change needs a later time"
        )
    if version.effective_to is None or version.effective_to > now:
        version.effective_to = now
        version.save(update_fields=["effective_to"])


def _published(
    supply: Supply, label: str, document: Mapping[str, Any], actor: Actor, now: datetime
) -> CapabilityVersion:
    version = CapabilityVersion.objects.create(
        supply=supply,
        label=label,
        document=document,
        document_hash=document_hash(document),
        effective_from=now,
        published_by=actor.name,
        published_at=now,
    )
    Supply.objects.filter(pk=supply.pk).update(capability_version=version, revision=supply.revision + 1)
    return version
