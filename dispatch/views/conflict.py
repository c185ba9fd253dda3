"""Somebody saved first: three versions side by side, and nothing that is overwritten or lost."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from catalog.models import ModelRevision
from dispatch.drafting.merging import Clash
from dispatch.queries.drafts import Edit
from dispatch.views.differences import differences
from dispatch.views.model_words import label_of, value_of


@dataclass(frozen=True, slots=True)
class Side:
    """One field as three say it; `choice` is what was picked so far."""

    field: str
    label: str
    base: str
    theirs: str
    mine: str
    choice: str = ""


def conflict_page(request: HttpRequest, edit: Edit, choices: Mapping[str, str] | None = None) -> HttpResponse:
    """409: what both changed, side by side. Nothing is overwritten, and nothing typed is lost."""
    found = edit.merge
    theirs = ModelRevision.objects.filter(public_model=edit.model, number=edit.stored.number).first()
    context = {
        "model": edit.model,
        "edit": edit,
        "theirs": theirs,
        "clashes": [_side(each, choices or {}) for each in found.clashes],
        "only_mine": differences(edit.base.fields, found.mine),
        "only_theirs": differences(edit.base.fields, found.theirs),
        "open_choices": choices is not None,
    }
    return render(request, "console/models/conflict.html", context, status=409)


def _side(clash: Clash, choices: Mapping[str, str]) -> Side:
    base, theirs, mine = (value_of(clash.field, text) for text in (clash.base, clash.theirs, clash.mine))
    return Side(clash.field, label_of(clash.field), base, theirs, mine, choices.get(clash.field, ""))
