"""A working copy with what it was begun from, and who else is at the same model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from catalog.facts import ModelFacts, model_facts
from catalog.models import ModelRevision, PublicModel, Supply
from dispatch.catalogue.repository import saved_model_facts
from dispatch.drafting.fields import Fields, differing, fields_of
from dispatch.drafting.merging import Merge, merge
from dispatch.drafting.reading import Draft, canonical, read_draft
from dispatch.models import WorkingCopy


@dataclass(frozen=True)
class Version:
    """A public model at one revision, as facts and as the fields of its form."""

    number: int
    facts: ModelFacts
    parameters: Mapping[str, Any]

    @property
    def fields(self) -> dict[str, str]:
        return fields_of(self.facts, self.parameters)


@dataclass(frozen=True)
class Edit:
    """Somebody's edit of a model. `base` is the revision that it was begun from, `stored` the present one;
    they are the same until somebody else saves."""

    model: PublicModel
    base: Version
    stored: Version
    typed: Fields
    copy: WorkingCopy | None

    @property
    def is_stale(self) -> bool:
        return self.base.number != self.stored.number

    @property
    def draft(self) -> Draft:
        return read_draft(self.base.facts, self.base.parameters, self.typed)

    @property
    def merge(self) -> Merge:
        return merge(self.base.fields, self.stored.fields, self.typed)


def stored_version(model: PublicModel) -> Version:
    """As the rows say now."""
    return Version(model.revision, saved_model_facts(model), model.policy.parameters)


def kept_version(model: PublicModel, number: int) -> Version | None:
    """As it was saved; None for a revision of which nothing was kept."""
    row = ModelRevision.objects.filter(public_model=model, number=number).first()
    if row is None:
        return None
    return Version(number, model_facts(model.slug, row.document["model"]), row.document["policy"])


def edit_of(model: PublicModel, user: User) -> Edit:
    """The working copy, or an edit in which nothing was changed yet."""
    copy = WorkingCopy.objects.filter(public_model=model, user=user).first()
    return edit_from(model, copy.base_revision if copy else model.revision, copy.typed if copy else {}, copy)


def edit_from(model: PublicModel, base_revision: int, typed: Fields, copy: WorkingCopy | None = None) -> Edit:
    """An edit as a form describes it. Of a revision that nobody kept, the present one takes the place."""
    stored = stored_version(model)
    base = stored if base_revision == stored.number else kept_version(model, base_revision) or stored
    written = {name: canonical(name, text) for name, text in typed.items()}
    return Edit(model, base, stored, differing(base.fields, written), copy)


def others_at(model: PublicModel, user: User) -> Sequence[WorkingCopy]:
    """Who else has a working copy of it, the newest first."""
    copies = model.working_copies.exclude(user=user).select_related("user")
    return list(copies.order_by("-changed_at")[:10])


def supplies_to_bind(model: PublicModel) -> Sequence[str]:
    """Slugs of the supplies of the model's modality."""
    return list(
        Supply.objects.filter(modality=model.modality).order_by("slug").values_list("slug", flat=True)
    )
