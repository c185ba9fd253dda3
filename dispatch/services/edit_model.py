"""Keeps what somebody typed about a public model, until it is saved or thrown away. Nothing live changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from catalog.models import PublicModel
from dispatch.models import WorkingCopy


@dataclass(frozen=True, slots=True)
class Typed:
    """All that differs from `base_revision`, as it stood after `step` changes on one `page`; "" where the
    page did not count them."""

    base_revision: int
    fields: Mapping[str, str]
    page: str = ""
    step: int = 0


@transaction.atomic
def keep_working_copy(model: PublicModel, user: User, typed: Typed, now: datetime) -> WorkingCopy | None:
    """The copy that stands now: what an earlier change of the same page sent, and comes later, changes
    nothing. Without any difference no copy is kept."""
    copy = WorkingCopy.objects.select_for_update().filter(public_model=model, user=user).first()
    if copy and typed.page and copy.page == typed.page and copy.step > typed.step:
        return copy
    if not typed.fields:
        discard_working_copy(model, user)
        return None
    values = {
        "base_revision": typed.base_revision,
        "typed": dict(typed.fields),
        "page": typed.page,
        "step": typed.step,
        "changed_at": now,
    }
    kept, _made = WorkingCopy.objects.update_or_create(
        public_model=model, user=user, defaults=values, create_defaults=values | {"begun_at": now}
    )
    return kept


def discard_working_copy(model: PublicModel, user: User) -> None:
    WorkingCopy.objects.filter(public_model=model, user=user).delete()
