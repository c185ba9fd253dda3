"""Probing an open circuit before its cooldown is over: said first, for a reason, one at a time."""

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

from catalog.models import Channel, Supply
from catalog.providers.registry import adapter_for
from dispatch.queries.channel_story import ChannelStory
from dispatch.queries.places import Circuit
from dispatch.services.answer_once import answer_once
from dispatch.services.check_accounts import account_passes
from dispatch.services.force_probe import force_probe
from dispatch.views.access import actor_of, requires
from dispatch.views.channels import found_channel, road_of
from dispatch.views.confirm import confirm_token, confirmed
from health.circuit import State, Subject
from health.models import CircuitRow

_PROBE: Final = "probe"
REASON_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    subject: Subject
    slug: str
    subject_id: int
    row: CircuitRow

    @property
    def key(self) -> str:
        return f"{self.subject}:{self.slug}"


def open_circuits(story: ChannelStory) -> Sequence[OpenCircuit]:
    """Of the channel and its supplies; the channel first, since its supplies stand behind it."""
    found = [_open_circuit(Subject.CHANNEL, story.row)]
    found += [_open_circuit(Subject.SUPPLY, each.row) for each in story.now.supplies]
    return [each for each in found if each is not None]


def _open_circuit(subject: Subject, row: Channel | Supply) -> OpenCircuit | None:
    health = getattr(row, "health", None)
    if health is None or health.state != State.CIRCUIT_OPEN:
        return None
    return OpenCircuit(subject, row.slug, row.pk, health)


@require_safe
@requires("try")
def probe(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, slug, {}, 200)


@require_POST
@requires("try")
def probe_now(request: HttpRequest, slug: str) -> HttpResponse:
    """The account is asked outside of any transaction, the circuit moved in one."""
    form = confirmed(request, _PROBE, slug)
    now, actor = timezone.now(), actor_of(request)
    story = found_channel(slug)
    typed = {name: request.POST.get(name, "").strip()[:REASON_LENGTH] for name in ("which", "reason")}
    known = {Subject.CHANNEL: {slug: story.row.pk}, Subject.SUPPLY: {}}
    known[Subject.SUPPLY] |= {each.row.slug: each.row.pk for each in story.now.supplies}
    faults = _faults(typed, known)
    if faults:
        return _page(request, slug, {"typed": typed, "faults": faults}, 422)
    kind, _colon, name = typed["which"].partition(":")
    subject = Subject(kind)
    passes = account_passes(story.row.pk)

    def act() -> str | None:
        subject_id = known[subject][name]
        fault = force_probe(subject, subject_id, typed["reason"], account_passes=passes, actor=actor, now=now)
        if fault:
            faults["which"] = fault
            return None
        messages.info(request, _("%(what)s is probed: the next attempt tries it.") % {"what": name})
        return reverse("channel", args=[slug])

    went_to = answer_once(form.key, actor.name, now, act)
    return redirect(went_to) if went_to else _page(request, slug, {"typed": typed, "faults": faults}, 409)


def _faults(typed: Mapping[str, str], known: Mapping[Subject, Mapping[str, int]]) -> dict[str, str]:
    faults = {}
    kind, _colon, name = typed["which"].partition(":")
    if kind not in list(Subject) or name not in known[Subject(kind)]:
        faults["which"] = "choose"
    if not typed["reason"]:
        faults["reason"] = "no_reason"
    return faults


def _page(request: HttpRequest, slug: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    now: datetime = timezone.now()
    story = found_channel(slug)
    circuits = open_circuits(story)
    context = {
        "story": story,
        "row": story.row,
        "channel": story.now,
        "circuits": circuits,
        "has_check": adapter_for(story.row.provider).capabilities.free_account_check,
        "road": road_of(Circuit("probing", 0, None, "channel")),
        "typed": {"which": circuits[0].key if len(circuits) == 1 else "", "reason": ""},
        "faults": {},
        "token": confirm_token(request, _PROBE, slug),
        "reason_length": REASON_LENGTH,
        "as_of": now,
        **more,
    }
    return render(request, "console/channels/probe.html", context, status=status)
