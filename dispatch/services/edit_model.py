"""Keeps what somebody typed about a public model, until it is saved or thrown away. Nothing live changes."""

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User

from catalog.models import PublicModel
from dispatch.models import WorkingCopy


def keep_working_copy(
    model: PublicModel, user: User, base_revision: int, typed: Mapping[str, str], now: datetime
) -> WorkingCopy | None:
    """`typed` is all that differs from `base_revision`; without any difference no copy is kept."""
    if not typed:
        discard_working_copy(model, user)
        return None
    copy, _made = WorkingCopy.objects.update_or_create(
        public_model=model,
        user=user,
        defaults={"base_revision": base_revision, "typed": dict(typed), "changed_at": now},
        create_defaults={
            "base_revision": base_revision,
            "typed": dict(typed),
            "begun_at": now,
            "changed_at": now,
        },
    )
    return copy


def discard_working_copy(model: PublicModel, user: User) -> None:
    WorkingCopy.objects.filter(public_model=model, user=user).delete()
