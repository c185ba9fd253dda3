"""Makes a new version of a dispatch policy; versions are never edited."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.facts import policy_parameters
from catalog.models import DispatchPolicy
from catalog.policy import PolicyError
from catalog.repository import find_policy, policy_name
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def save_policy(name: str, parameters: Mapping[str, Any], *, actor: Actor, now: datetime) -> DispatchPolicy:
    """The version with these parameters: the newest of the slug where they are equal, else a new one.
    `name` is a slug, or `slug@version` to restore that very version where it does not exist.

    Raises CatalogueError where a parameter is wrong or that version exists with other parameters."""
    lock_revision()
    complete = _complete(parameters)
    present = find_policy(name)
    if present and policy_parameters(present.parameters) == complete:
        return present
    slug, _, version = name.partition("@")
    if version and present:
        raise CatalogueError("", f"{name} exists with other parameters, and a version is never edited")
    row = DispatchPolicy.objects.create(
        slug=slug,
        version=int(version) if version else present.version + 1 if present else 1,
        parameters=complete,
        created_at=now,
        created_by=actor.name,
    )
    before = {"version": present.version, "parameters": present.parameters} if present else None
    after = {"name": policy_name(row), "parameters": complete}
    record(actor, Change("save policy", f"policy:{row.public_id}", before, after), now)
    bump_revision()
    return row


def _complete(parameters: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return policy_parameters(parameters)
    except PolicyError as error:
        name, _, message = str(error).partition(": ")
        raise CatalogueError(name, message) from error
