"""Editing a public model: a working copy that is kept at every change, and nothing live that changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.models import DegradationRule, PublicModel
from dispatch.drafting.fields import OF_BINDING, ON, differing
from dispatch.drafting.merging import chosen
from dispatch.drafting.notices import moved, renumbered
from dispatch.queries.drafts import Edit, edit_from, edit_of, supplies_to_bind
from dispatch.routing.types import TIERS
from dispatch.services.answer_once import answer_once
from dispatch.services.edit_model import (
    Typed,
    WorkingCopyGone,
    discard_working_copy,
    keep_working_copy,
)
from dispatch.views.access import person, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.conflict import conflict_page
from dispatch.views.differences import differences
from dispatch.views.edit_form import edit_form
from dispatch.views.models import find_model
from dispatch.views.shell import is_beat

_FLAGS: Final = (":enabled", "emergency_override", "spill_when_saturated")
_CHOICE: Final = "choose "
_DISCARD: Final = "discard"


@require_safe
@requires("edit")
def edit_model(request: HttpRequest, slug: str) -> HttpResponse:
    row = find_model(slug)
    edit = edit_of(row, person(request))
    if edit.is_stale:
        return conflict_page(request, edit)
    context = edit_form(edit, person(request), timezone.now())
    return render(request, "console/models/edit.html", context | {"focus": request.GET.get("focus", "")})


@require_POST
@requires("edit")
def keep_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Keeps what is typed; then does what the pressed button says, and nothing more for a changed field."""
    row = find_model(slug)
    # A form that is sent without any of its buttons asks for the review; a changed field asks for nothing.
    done = _done(request.POST, _posted(row, request.POST), "keep" if is_beat(request) else "review")
    edit = done.edit
    now = timezone.now()
    typed = _typed(edit, request.POST)
    try:
        copy = keep_working_copy(row, person(request), typed, now)
    except WorkingCopyGone:
        return _gone_page(request, edit)
    if edit.is_stale:
        return conflict_page(request, edit)
    faults = edit.draft.faults
    if done.action == "review" and not faults:
        return redirect("review_model", slug)
    now_edited = Edit(row, edit.base, edit.stored, edit.typed, copy)
    context = edit_form(now_edited, person(request), now, typed.key)
    context |= {"said": done.said, "show_summary": bool(faults) and done.action == "review"}
    if is_beat(request):
        return render(request, "console/models/edit.html#form", context, status=422 if faults else 200)
    if faults and done.action in ("review", "keep"):
        return render(request, "console/models/edit.html", context | {"show_summary": True}, status=422)
    return redirect(f"{request.path.removesuffix('keep/')}?focus={done.focus}")


@require_safe
@requires("edit")
def discard_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """What would be lost, before it is."""
    edit = edit_of(find_model(slug), person(request))
    if not edit.typed:
        return redirect("model", slug)
    context = {
        "model": edit.model,
        "differences": differences(edit.base.fields, edit.typed),
        "token": confirm_token(request, _DISCARD, slug),
    }
    return render(request, "console/models/discard.html", context)


@require_POST
@requires("edit")
def discard_edit_now(request: HttpRequest, slug: str) -> HttpResponse:
    row, user, now = find_model(slug), person(request), timezone.now()
    form = confirmed(request, _DISCARD, slug)

    def discard() -> str:
        discard_working_copy(row, user, now)
        messages.info(request, _("Your changes of %(model)s were discarded.") % {"model": slug})
        return reverse("model", args=[slug])

    return redirect(answer_once(form.key, user.get_username(), now, discard) or "models")


@require_POST
@requires("edit")
def merge_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Puts my changes over what somebody else saved, each clash as chosen, and shows the review again."""
    row = find_model(slug)
    edit = edit_of(row, person(request))
    choices = {
        name.removeprefix(_CHOICE): str(value)
        for name, value in request.POST.items()
        if name.startswith(_CHOICE)
    }
    typed = chosen(edit.merge, edit.base.fields, edit.typed, choices)
    if typed is None:
        return conflict_page(request, edit, choices)
    rebased = differing(edit.stored.fields, typed)
    keep_working_copy(row, person(request), Typed(edit.stored.number, rebased), timezone.now())
    return redirect("review_model" if rebased else "model", slug)


def _typed(edit: Edit, form: QueryDict) -> Typed:
    page, step = form.get("page", "")[:40], form.get("step", "")
    counted = int(step) if step.isdecimal() and len(step) < 9 else 0
    return Typed(edit.base.number, edit.typed, page, counted, form.get("key", "")[:40])


def _gone_page(request: HttpRequest, edit: Edit) -> HttpResponse:
    """409: nothing was kept. What was typed stands there, and may be made a working copy of its own."""
    context = {
        "model": edit.model,
        "edit": edit,
        "rows": request.POST.getlist("row"),
        "key": uuid4().hex,
        "differences": differences(edit.base.fields, edit.typed),
    }
    return render(request, "console/models/gone.html", context, status=409)


def _posted(row: PublicModel, form: QueryDict) -> Edit:
    """The form's fields over the revision that it was made from. What it does not hold stays as it was."""
    text = form.get("base", "")
    begun_from = int(text) if text.isdecimal() else row.revision
    empty = edit_from(row, begun_from, {})
    fields = {**empty.base.fields, **_added_rows(row, form, empty)}
    typed = {name: _value(name, form) for name in fields if name in form}
    return edit_from(row, begun_from, {**_new_fields(fields, empty), **typed})


def _added_rows(row: PublicModel, form: QueryDict, empty: Edit) -> dict[str, str]:
    """The fields of bindings that the form has and the revision has not."""
    known, slugs = empty.base.fields, set(supplies_to_bind(row))
    added: dict[str, str] = {}
    for key in form.getlist("row"):
        supply, _at, tier = key.rpartition("@")
        if f"{key}:bound" not in known and supply in slugs and tier in TIERS:
            added |= _new_row(key, tier)
    return added


def _new_row(key: str, tier: str) -> dict[str, str]:
    values = {"bound": ON, "tier": tier, "priority": "0", "enabled": ON, "rule": ""}
    return {f"{key}:{name}": values[name] for name in OF_BINDING}


def _new_fields(fields: Mapping[str, str], empty: Edit) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name not in empty.base.fields}


def _value(name: str, form: QueryDict) -> str:
    """Of a tick box, the last: a hidden empty one stands before it."""
    value = str(form.getlist(name)[-1])
    return (ON if value == ON else "") if name.endswith(_FLAGS) else value


@dataclass(frozen=True)
class Done:
    """`said` is for whoever does not see the page; `focus` the element that was pressed."""

    edit: Edit
    action: str
    said: str = ""
    focus: str = ""


def _done(form: QueryDict, edit: Edit, default: str) -> Done:
    action, _space, key = form.get("do", default).partition(" ")
    act = _ACTIONS.get(action)
    if act is None:
        return Done(edit, action if action == "review" else "keep")
    typed, said = act(edit, key, form)
    return Done(
        edit_from(edit.model, edit.base.number, {**edit.typed, **typed}), action, said, f"{action}-{key}"
    )


def _move(edit: Edit, key: str, up: bool) -> tuple[Mapping[str, str], str]:
    form = edit_form(edit, None, timezone.now())
    tier = next((each for each in form["tiers"] if key in each.keys), None)
    if tier is None:
        return {}, ""
    ordered = [(row.key, row.facts.priority) for row in tier.in_order]
    priority = moved(ordered, key, up) if key in [each for each, _priority in ordered] else None
    supply = key.rpartition("@")[0]
    if priority is None:
        return {}, _("%(supply)s stays: no number fits there.") % {"supply": supply}
    place = [each for each, _priority in ordered].index(key) + (0 if up else 2)
    said = _("%(supply)s is now number %(place)s of %(count)s.")
    return (
        {f"{key}:priority": str(priority)},
        said % {"supply": supply, "place": place, "count": len(ordered)},
    )


def _up(edit: Edit, key: str, _form: QueryDict) -> tuple[Mapping[str, str], str]:
    return _move(edit, key, up=True)


def _down(edit: Edit, key: str, _form: QueryDict) -> tuple[Mapping[str, str], str]:
    return _move(edit, key, up=False)


def _remove(_edit: Edit, key: str, _form: QueryDict) -> tuple[Mapping[str, str], str]:
    return {f"{key}:bound": ""}, _("%(supply)s is taken out.") % {"supply": key.rpartition("@")[0]}


def _restore(_edit: Edit, key: str, _form: QueryDict) -> tuple[Mapping[str, str], str]:
    return {f"{key}:bound": ON}, _("%(supply)s is back.") % {"supply": key.rpartition("@")[0]}


def _add(edit: Edit, _key: str, form: QueryDict) -> tuple[Mapping[str, str], str]:
    supply, tier = form.get("add supply", ""), form.get("add tier", "fallback")
    key = f"{supply}@{tier}"
    fields = {**edit.base.fields, **edit.typed}
    if supply not in supplies_to_bind(edit.model) or tier not in TIERS:
        return {}, ""
    if fields.get(f"{key}:bound") == ON:
        return {}, _("%(supply)s is bound there already.") % {"supply": supply}
    row = _new_row(key, tier)
    if tier == "degraded":
        row[f"{key}:rule"] = (
            DegradationRule.objects.order_by("slug").values_list("slug", flat=True).first() or ""
        )
    known = f"{key}:bound" in edit.base.fields
    return ({f"{key}:bound": ON} if known else row), _("%(supply)s is added.") % {"supply": supply}


def _renumber(edit: Edit, _key: str, _form: QueryDict) -> tuple[Mapping[str, str], str]:
    form = edit_form(edit, None, timezone.now())
    numbers: dict[str, int] = {}
    for tier in form["tiers"]:
        numbers |= renumbered([row.key for row in tier.in_order])
    return {f"{key}:priority": str(value) for key, value in numbers.items()}, _(
        "Renumbered in steps of 10,000."
    )


_ACTIONS: Final[Mapping[str, Callable[[Edit, str, QueryDict], tuple[Mapping[str, str], str]]]] = {
    "up": _up,
    "down": _down,
    "remove": _remove,
    "restore": _restore,
    "add": _add,
    "renumber": _renumber,
}
