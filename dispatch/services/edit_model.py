"""Keeps what somebody typed about a public model, until it is saved or thrown away. Nothing live changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from catalog.models import PublicModel
from dispatch.models import FormReceipt, WorkingCopy


@dataclass(frozen=True, slots=True)
class Typed:
    """All that differs from `base_revision`, as it stood after `step` changes on one `page`; "" where the
    page did not count them. `key` is that of the working copy that it was typed in, "" for any."""

    base_revision: int
    fields: Mapping[str, str]
    page: str = ""
    step: int = 0
    key: str = ""


class WorkingCopyGone(Exception):
    """What it was typed in was saved or thrown away meanwhile."""


@transaction.atomic
def keep_working_copy(model: PublicModel, user: User, typed: Typed, now: datetime) -> WorkingCopy | None:
    """The copy that stands now: what an earlier change of the same page sent, and comes later, changes
    nothing. Without any difference no copy is kept. Raises WorkingCopyGone."""
    values = {
        "base_revision": typed.base_revision,
        "typed": dict(typed.fields),
        "page": typed.page,
        "step": typed.step,
        "changed_at": now,
    }
    # The row before the look: two changes of a page may begin it at once, and the second has to compare.
    copy, is_new = WorkingCopy.objects.select_for_update().get_or_create(
        public_model=model, user=user, defaults=values | {"key": typed.key, "begun_at": now}
    )
    if FormReceipt.objects.filter(pk=typed.key).exists():
        raise WorkingCopyGone(typed.key)
    if typed.page and copy.page == typed.page and copy.step > typed.step:
        return copy
    if not typed.fields:
        copy.delete()
        return None
    if not is_new:
        for name, value in (values | {"key": copy.key or typed.key}).items():
            setattr(copy, name, value)
        copy.save()
    return copy


@transaction.atomic
def discard_working_copy(model: PublicModel, user: User, now: datetime) -> None:
    """It is done with, and its key with it: what was typed in it and is still on its way comes too late."""
    copy = _locked(model, user)
    if copy is None:
        return
    if copy.key:
        FormReceipt.objects.get_or_create(
            pk=copy.key, defaults={"user": user.get_username(), "went_to": "", "at": now}
        )
    copy.delete()


def _locked(model: PublicModel, user: User) -> WorkingCopy | None:
    return WorkingCopy.objects.select_for_update().filter(public_model=model, user=user).first()
