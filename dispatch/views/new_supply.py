"""A new supply in four steps: what it is, what it can do, its slots, what it charges. Each step is kept as it
is typed; with the last one the supply exists, and is tried next."""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.exceptions import CatalogueError, StaleRevision
from catalog.models import AdminState, Channel, Supply
from dispatch import price_form, supply_form
from dispatch.models import SupplyDraft
from dispatch.services.add_supply import NewSupply, add_supply, discard_draft, keep_draft
from dispatch.services.answer_once import answer_once
from dispatch.supply_form import STEPS, Known, Read
from dispatch.views import supply_words as words
from dispatch.views.access import actions_of, actor_of, person, refuse, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.prices import fault_said
from dispatch.views.vocabulary import word

_ADD: Final = "add supply"
_DISCARD: Final = "discard a new supply"
_NEW: Final = "a new draft"


@require_safe
@requires("edit")
def new_supply(request: HttpRequest) -> HttpResponse:
    """The first step, empty; and what this person has begun."""
    typed = {"channel": request.GET.get("channel", "")}
    return _page(request, None, "what", {**supply_form.START["what"], **typed}, Read(), 200)


@require_safe
@requires("edit")
def supply_step(request: HttpRequest, draft_id: str, step: str) -> HttpResponse:
    draft = _found(request, draft_id)
    if step not in STEPS:
        raise Http404
    return _page(request, draft, step, _typed(draft, step), Read(), 200)


@require_POST
@requires("edit")
def keep_supply_step(request: HttpRequest, step: str) -> HttpResponse:
    """Keeps what is typed, right or wrong; goes on where it can be read."""
    if step not in STEPS:
        raise Http404
    draft_id = request.POST.get("draft", "")
    draft = _found(request, draft_id) if draft_id else None
    form = confirmed(request, _ADD, draft_id or _NEW)
    typed = supply_form.kept(step, request.POST.dict(), request.POST.getlist)
    user, now, row = person(request), timezone.now(), request.POST.get("do", "")
    if row in price_form.ROWS:
        typed = price_form.with_another_row(typed, row)
    if draft is None:
        address = answer_once(form.key, user.get_username(), now, lambda: _begun(request, step, typed))
        draft = _found(request, (address or "").rstrip("/").split("/")[-2])
    draft = keep_draft(draft, user, step, typed, now)
    if row in price_form.ROWS:
        return redirect("supply_step", draft.public_id, step)
    read = _read(draft, step)
    if read.faults and not _is_skipped(request, step):
        return _page(request, draft, step, typed, read, 422)
    if step != STEPS[-1]:
        return redirect("supply_step", draft.public_id, STEPS[STEPS.index(step) + 1])
    return _add(request, draft, form.key)


@require_safe
@requires("edit")
def discard_supply_draft(request: HttpRequest, draft_id: str) -> HttpResponse:
    """What would be lost, before it is."""
    draft = _found(request, draft_id)
    context = {"draft": draft, "token": confirm_token(request, _DISCARD, draft_id)}
    return render(request, "console/supplies/new_discard.html", context)


@require_POST
@requires("edit")
def discard_supply_draft_now(request: HttpRequest, draft_id: str) -> HttpResponse:
    user, now = person(request), timezone.now()
    form = confirmed(request, _DISCARD, draft_id)

    def discard() -> str:
        discard_draft(user, draft_id)
        messages.info(request, _("The draft is gone. No supply was changed."))
        return reverse("supplies")

    return redirect(answer_once(form.key, user.get_username(), now, discard) or "supplies")


def _drafts(request: HttpRequest) -> QuerySet[SupplyDraft]:
    return SupplyDraft.objects.filter(user=person(request)).order_by("-changed_at")[:20]


def _begun(request: HttpRequest, step: str, typed: Mapping[str, str]) -> str:
    draft = keep_draft(None, person(request), step, typed, timezone.now())
    return reverse("supply_step", args=[draft.public_id, step])


def _found(request: HttpRequest, draft_id: str) -> SupplyDraft:
    draft = SupplyDraft.objects.filter(user=person(request), public_id=draft_id).first()
    if draft is None:
        raise Http404
    return draft


def _typed(draft: SupplyDraft | None, step: str) -> Mapping[str, str]:
    kept: Mapping[str, str] | None = draft.typed.get(step) if draft else None
    return supply_form.START[step] if kept is None else kept


def _modality(draft: SupplyDraft | None) -> str:
    return "image" if _typed(draft, "what").get("modality") == "image" else "video"


def _read(draft: SupplyDraft, step: str) -> Read:
    typed = _typed(draft, step)
    if step == "what":
        return supply_form.read_what(typed, _known())
    if step == "can":
        return supply_form.read_can(typed, _modality(draft))
    if step == "slots":
        return supply_form.read_slots(typed)
    return supply_form.read_cost(typed, _modality(draft))


def _known() -> Known:
    channels = Channel.objects.exclude(state=AdminState.DISABLED).values_list("slug", flat=True)
    return Known(set(channels), set(Supply.objects.values_list("slug", flat=True)))


def _is_skipped(request: HttpRequest, step: str) -> bool:
    """A price may be left to those whose role it is."""
    return step == "cost" and request.POST.get("do") == "without"


def _add(request: HttpRequest, draft: SupplyDraft, key: str) -> HttpResponse:
    """Every step is read again: a slug may be taken by now."""
    without_price = _is_skipped(request, "cost")
    if not without_price and "price" not in actions_of(person(request)):
        refuse(request, "price")
    reads = {step: _read(draft, step) for step in STEPS if step != "cost" or not without_price}
    for step, read in reads.items():
        if read.faults:
            return _page(request, draft, step, _typed(draft, step), read, 422)
    actor, now = actor_of(request), timezone.now()
    facts = supply_form.supply_facts_of(*(reads[step].values for step in STEPS[:3]))
    can, price = reads["can"].values, None if without_price else reads["cost"].values["document"]
    new = NewSupply(facts, can["label"], can["document"], price)

    def add() -> str:
        supply = add_supply(new, draft, actor=actor, now=now)
        messages.info(request, _("The supply exists. No public model uses it yet."))
        return reverse("try_supply", args=[supply.slug])

    try:
        return redirect(answer_once(key, actor.name, now, add) or "supplies")
    except StaleRevision:
        read = Read({}, {"slug": "slug_taken"})
    except CatalogueError as error:
        read = Read({}, {"channel": "bad_document"}, str(error))
    return _page(request, draft, "what", _typed(draft, "what"), read, 409)


def _page(
    request: HttpRequest,
    draft: SupplyDraft | None,
    step: str,
    typed: Mapping[str, str],
    read: Read,
    status: int,
) -> HttpResponse:
    modality = _modality(draft)
    context: dict[str, Any] = {
        "draft": draft,
        "step": step,
        "number": STEPS.index(step) + 1,
        "before": STEPS[STEPS.index(step) - 1] if step != STEPS[0] else "",
        "steps": STEPS,
        "typed": typed,
        "faults": read.faults,
        "fault_lines": [(name, _fault_said(name, code)) for name, code in read.faults.items()],
        "said": read.said,
        "what": _typed(draft, "what"),
        "modality": modality,
        "token": confirm_token(request, _ADD, draft.public_id if draft else _NEW),
        "as_of": timezone.now(),
        **_choices(request, draft, step, typed, modality),
    }
    return render(request, f"console/supplies/new_{step}.html", context, status=status)


def _fault_said(name: str, code: str) -> str:
    if code == "bad_price":
        return fault_said(name)
    told = {"field": word(words.SUPPLY_FIELDS, name), "fault": word(words.SUPPLY_FAULTS, code)}
    return _("%(field)s: %(fault)s") % told


def _choices(
    request: HttpRequest, draft: SupplyDraft | None, step: str, typed: Mapping[str, str], modality: str
) -> dict[str, Any]:
    if step == "what":
        return {
            "channels": sorted(_known().channels),
            "drafts": [] if draft else list(_drafts(request)),
            "lifecycles": supply_form.LIFECYCLES,
        }
    if step == "can":
        modes, ticked = supply_form.MODES[modality], typed.get("modes", "").split(", ")
        return {"modes": modes, "ticked": ticked, "real_person": supply_form.REAL_PERSON}
    if step == "cost":
        return {"texts": price_form.texts_posted(typed), "price_modes": price_form.MODES}
    channel = Channel.objects.filter(slug=_typed(draft, "what").get("channel", "")).first()
    return {"channel": channel}
