"""The desk of uncertain attempts: evidence, who is on it, and three decisions that say what they do.

Nothing here sends anything again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.audit import Actor
from dispatch.decisions import Decision
from dispatch.errors import (
    AlreadyDecided,
    DecisionNeedsEvidence,
    NotAtProvider,
    SenderNotEnded,
    TakenByAnother,
    TaskOfAnother,
)
from dispatch.models import Attempt
from dispatch.queries import uncertain as desk
from dispatch.queries.uncertain import Story
from dispatch.services import decide_submission as decide
from dispatch.services.query_provider import query_provider
from dispatch.services.take_attempt import take_attempt
from dispatch.templatetags.console import clock_text
from dispatch.views.access import actor_of, person, requires
from dispatch.views.confirm import confirm_token, confirmed
from dispatch.views.rows import rows_on_screen
from dispatch.views.shell import is_beat, page

_DECIDE: Final = "decide"
EVIDENCE_LENGTH: Final = 500


@require_safe
@requires("read")
def uncertain(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    if is_beat(request):
        ids = rows_on_screen(request)
        context = {"lines": desk.lines_again(ids, now), "arrived": desk.newer_count(ids)}
        return page(request, "console/uncertain/list.html", context, now)
    found = desk.desk(now)
    return page(request, "console/uncertain/list.html", {"desk": found, "lines": found.lines}, now)


@require_safe
@requires("read")
def uncertain_attempt(request: HttpRequest, attempt_id: str) -> HttpResponse:
    now = timezone.now()
    return page(
        request, "console/uncertain/attempt.html", _context(request, _story(attempt_id, now), now), now
    )


@require_POST
@requires("settle")
def take(request: HttpRequest, attempt_id: str) -> HttpResponse:
    """For half an hour. Somebody else's claim is replaced only by who says so."""
    now = timezone.now()
    attempt = _found(attempt_id)
    try:
        claim = take_attempt(attempt, _actor(request), now, take_over=request.POST.get("over") == "yes")
    except TakenByAnother:
        return _again(request, attempt_id, {"taken_meanwhile": True}, 409)
    messages.info(request, _("You are on it until %(time)s.") % {"time": clock_text(claim.until_at)})
    return redirect("uncertain_attempt", attempt_id)


@require_POST
@requires("settle")
def query(request: HttpRequest, attempt_id: str) -> HttpResponse:
    """Asks the provider and shows the answer; it reads only, and decides nothing."""
    attempt, task = _found(attempt_id), request.POST.get("task", "").strip()[:300]
    answer = query_provider(attempt, task, actor=_actor(request), clock=timezone.now)
    return _again(request, attempt_id, {"answer": answer, "task": task}, 200)


@require_safe
@requires("settle")
def decision(request: HttpRequest, attempt_id: str) -> HttpResponse:
    """What the decision does, before it is made. 422 where its evidence is missing or is somebody else's."""
    now, (wanted, evidence) = timezone.now(), _wish(request.GET)
    story = _story(attempt_id, now)
    if not story.can_be_decided:
        return _again(request, attempt_id, {"decided_meanwhile": True}, 409)
    if story.line.claim and story.line.claim.operator != _actor(request).name:
        return _again(request, attempt_id, {"taken_meanwhile": True}, 409)
    fault = _fault(story.attempt, wanted, evidence)
    if fault:
        return _again(request, attempt_id, {"fault": fault, "wanted": wanted, "evidence": evidence}, 422)
    context = {
        **_context(request, story, now),
        "wanted": wanted,
        "evidence": evidence,
        "effect": next(each for each in story.effects if each.decision == wanted),
        "needs_second": wanted == Decision.GIVE_UP and _waits_for_second(request, story),
        "token": confirm_token(request, _DECIDE, f"{attempt_id}:{wanted}"),
    }
    return render(request, "console/uncertain/confirm.html", {**context, "as_of": now})


@require_POST
@requires("settle")
def decide_now(request: HttpRequest, attempt_id: str) -> HttpResponse:
    attempt, (wanted, evidence) = _found(attempt_id), _wish(request.POST)
    confirmed(request, _DECIDE, f"{attempt_id}:{wanted}")
    try:
        said = _decide(attempt, wanted, evidence, _actor(request))
    except AlreadyDecided:
        return _again(request, attempt_id, {"decided_meanwhile": True}, 409)
    except TakenByAnother:
        return _again(request, attempt_id, {"taken_meanwhile": True}, 409)
    except (DecisionNeedsEvidence, NotAtProvider) as error:
        kept = {"fault": _words_of(error), "wanted": wanted, "evidence": evidence}
        return _again(request, attempt_id, kept, 422)
    messages.info(request, said)
    return redirect("uncertain_attempt", attempt_id)


def _decide(attempt: Attempt, wanted: str, evidence: str, actor: Actor) -> str:
    """Not inside a transaction of ours: the first of them asks the provider."""
    if wanted == Decision.EXISTS:
        decide.provider_has_it(attempt.pk, evidence, actor, timezone.now)
        return _("Decided: the provider has it. The attempt goes on.")
    if wanted == Decision.ABSENT:
        decide.provider_does_not_have_it(attempt.pk, evidence, actor, timezone.now())
        return _("Decided: the provider does not have it.")
    if decide.cannot_be_found_out(attempt.pk, evidence, actor, timezone.now()):
        return _("Decided: it cannot be found out. The job has ended.")
    return _("Kept. A second person has to say the same, since it costs more than one gives up alone.")


def _wish(values: Mapping[str, Any]) -> tuple[str, str]:
    wanted = str(values.get("decision", ""))
    if wanted not in list(Decision):
        raise Http404
    return wanted, str(values.get("evidence", "")).strip()[:EVIDENCE_LENGTH]


def _fault(attempt: Attempt, wanted: str, evidence: str) -> str:
    """What is missing, in words; the provider itself is asked when it is confirmed."""
    try:
        if wanted == Decision.EXISTS:
            decide.refuse_used(attempt, evidence)
        decide.refuse_empty(evidence, "evidence")
    except DecisionNeedsEvidence as error:
        return _words_of(error)
    return ""


def _words_of(error: DecisionNeedsEvidence | NotAtProvider) -> str:
    if isinstance(error, TaskOfAnother):
        told = {"task": error.task, "attempt": error.attempt}
        return _("%(task)s is the task of another attempt: %(attempt)s.") % told
    if isinstance(error, SenderNotEnded):
        return _("The worker that may send this has not ended: it could still reach the provider.")
    if isinstance(error, NotAtProvider):
        return _("The provider did not confirm this task id: %(told)s") % {"told": str(error)}
    return _("Say what this decision rests on.")


def _waits_for_second(request: HttpRequest, story: Story) -> bool:
    """Whether this person's word alone is not enough, and nobody else has given theirs."""
    first = story.line.giving_up
    by_another = first is not None and first.operator != _actor(request).name
    return decide.needs_second_person(story.attempt) and not by_another


def _again(request: HttpRequest, attempt_id: str, more: Mapping[str, Any], status: int) -> HttpResponse:
    """The attempt's page as it stands now, with what happened."""
    now = timezone.now()
    context = {**_context(request, _story(attempt_id, now), now), **more, "as_of": now}
    return render(request, "console/uncertain/attempt.html", context, status=status)


def _context(request: HttpRequest, story: Story, now: datetime) -> dict[str, Any]:
    claim = story.line.claim
    return {
        "story": story,
        "attempt": story.attempt,
        "line": story.line,
        "mine": claim is not None and claim.operator == person(request).get_username(),
        "evidence_length": EVIDENCE_LENGTH,
        "late": story.attempt.uncertain_deadline_at is not None and story.attempt.uncertain_deadline_at < now,
    }


def _story(attempt_id: str, now: datetime) -> Story:
    return desk.story_of(_found(attempt_id), now)


def _found(attempt_id: str) -> Attempt:
    found = desk.find_attempt(attempt_id)
    if found is None:
        raise Http404
    return found


def _actor(request: HttpRequest) -> Actor:
    return actor_of(request)
