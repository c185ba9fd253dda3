"""Review and save: what changes, what it would have done, whether it could be published, what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.exceptions import CatalogueError, StaleRevision
from catalog.models import PublicModel
from dispatch.drafting.reading import Draft
from dispatch.gates import Gate
from dispatch.queries.bindings_now import bindings_now
from dispatch.queries.drafts import Edit, Version, edit_of
from dispatch.queries.model_list import demand_for
from dispatch.queries.publication_watches import watches_of
from dispatch.routing.types import TIERS
from dispatch.services.answer_once import answer_once
from dispatch.services.edit_model import discard_working_copy
from dispatch.services.preflight import preflight
from dispatch.services.replay_effect import replay_effect
from dispatch.services.save_draft import save_draft
from dispatch.templatetags.console import clock_text
from dispatch.views.access import actor_of, person, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.conflict import conflict_page
from dispatch.views.differences import differences
from dispatch.views.models import find_model, last_change
from dispatch.views.shell import page
from dispatch.views.snapshot_words import unreplayed_said

NOTE_LENGTH: Final = 300
_SAVE: Final = "save"


@require_safe
@requires("edit")
def review_model(request: HttpRequest, slug: str) -> HttpResponse:
    edit = edit_of(find_model(slug), person(request))
    if edit.is_stale:
        return conflict_page(request, edit)
    if not edit.typed or edit.draft.faults:
        return redirect("edit_model", slug)
    return _review_page(request, edit, timezone.now())


@require_safe
@requires("edit")
def effect(request: HttpRequest, slug: str) -> HttpResponse:
    """The effect on the last 24 hours alone: it may take seconds, so the page does not wait for it."""
    edit = edit_of(find_model(slug), person(request))
    context = _effect(edit, timezone.now()) | {"model": edit.model}
    return page(request, "console/models/effect.html", context, timezone.now())


@require_POST
@requires("edit")
def save_model(request: HttpRequest, slug: str) -> HttpResponse:
    """Saves the working copy as a new revision, which takes the model out of production."""
    row = find_model(slug)
    form = confirmed(request, _SAVE, slug)
    edit = edit_of(row, person(request))
    note = request.POST.get("note", "").strip()[:NOTE_LENGTH]
    actor, now = actor_of(request), timezone.now()

    def save() -> str | None:
        if edit.is_stale or edit.base.number != form.version:
            raise StaleRevision(f"public model {slug}", form.version, row.revision)
        if not (note and edit.typed) or edit.draft.faults:
            return None
        saved = save_draft(edit.draft, expected_revision=form.version, actor=actor, now=now, note=note)
        discard_working_copy(row, person(request), now)
        _say_saved(request, saved, now)
        return reverse("publish_model", args=[slug])

    try:
        went_to = answer_once(form.key, actor.name, now, save)
    except StaleRevision:
        return conflict_page(request, edit_of(find_model(slug), person(request)))
    except CatalogueError as error:
        return _review_page(request, edit, now, {"refused": f"{error.path}: {error.message}"}, status=422)
    if went_to is None:
        return _review_page(request, edit, now, {"no_note": not note}, status=422)
    return redirect(went_to)


def _say_saved(request: HttpRequest, saved: PublicModel, now: datetime) -> None:
    told = {"n": saved.revision, "time": clock_text(now), "last": saved.published_revision}
    if saved.published_revision is None:
        text = _("Saved as revision %(n)s at %(time)s. Not in production: it was never published.")
    else:
        text = _("Saved as revision %(n)s at %(time)s. Not in production. Last published: %(last)s.")
    messages.info(request, text % told)


@dataclass(frozen=True, slots=True)
class Reordered:
    """A binding's place in the order of its tier, before and after; None where it is not tried."""

    key: str
    tier: str
    supply: str
    before: int | None
    after: int | None

    @property
    def is_moved(self) -> bool:
        return self.before != self.after


def _review_page(
    request: HttpRequest,
    edit: Edit,
    now: datetime,
    more: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    draft = edit.draft
    context = {
        "model": edit.model,
        "edit": edit,
        "as_of": now,
        "differences": differences(edit.base.fields, edit.typed),
        "orders": _orders(edit, draft, now),
        "demand": demand_for(edit.model, now),
        "token": confirm_token(request, _SAVE, edit.model.slug, edit.base.number),
        "note": request.POST.get("note", ""),
        "note_length": NOTE_LENGTH,
        "with_effect": request.GET.get("effect") == "1",
        "last_change": last_change(edit.model),
        **_gates(edit, draft, now),
        **(more or {}),
    }
    if context["with_effect"]:
        context |= _effect(edit, now)
    return render(request, "console/models/review.html", context, status=status)


def _gates(edit: Edit, draft: Draft, now: datetime) -> dict[str, Any]:
    try:
        gates = preflight(draft, edit.base.number, now)
    except (StaleRevision, CatalogueError) as error:
        return {"gates": [], "refused": str(error)}
    return {"gates": failing_first(gates), "failed": [gate for gate in gates if not gate.passed]}


def failing_first(gates: Sequence[Gate]) -> list[Gate]:
    return sorted(gates, key=lambda gate: (gate.passed, gate.number))


def _orders(edit: Edit, draft: Draft, now: datetime) -> list[tuple[str, list[Reordered]]]:
    """By tier, where anything moves: every binding with both places."""
    before = _places(edit.model, edit.base, now)
    after = _places(edit.model, Version(0, draft.facts, draft.parameters), now)
    keys = dict.fromkeys([*after, *before])
    rows = [
        Reordered(key, key.rpartition("@")[2], key.rpartition("@")[0], before.get(key), after.get(key))
        for key in keys
    ]
    by_tier = [(tier, [row for row in rows if row.tier == tier]) for tier in TIERS]
    return [(tier, own) for tier, own in by_tier if any(row.is_moved for row in own)]


def _places(model: PublicModel, version: Version, now: datetime) -> dict[str, int | None]:
    return {
        each.key: each.placed.position if each.placed else None
        for tier in bindings_now(model, version.facts, version.parameters, now)
        for each in tier.bindings
    }


def _effect(edit: Edit, now: datetime) -> dict[str, Any]:
    """The recorded selections of the last 24 hours under the draft, as a revision that nobody saved."""
    found = replay_effect(edit.draft, now)
    return {
        "effect": found,
        "share": found.changed / found.replayed if found.replayed else 0.0,
        "unchanged": found.replayed - found.changed,
        "not_replayed": [(unreplayed_said(reason), n) for reason, n in found.not_replayed.items()],
        "past": [each for each in watches_of(edit.model) if each.compared.share_error is not None],
        "currency": edit.draft.parameters.get("currency", "USD"),
    }
