"""Asks providers how far their jobs are, many at once, and has recorded what they say.

Attempts that are due are claimed a channel's share at a time and asked about by threads that never touch
the database; what said nothing new is written in one statement, the rest in one transaction. A poll that
fails, fails nothing: it is only repeated later."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError

from catalog.models import Channel
from catalog.providers.registry import adapter_for
from catalog.providers.types import JobStatus, PollFailure, PollResult
from catalog.vault import VaultError
from dispatch.lifecycle import AttemptState
from dispatch.poll_rows import Look, channels_due, claim_due, write_nothing_new
from dispatch.polling import Answered, Polling, polling_of_this_process
from dispatch.services.record_poll import (
    STATE_OF_STATUS,
    is_news_of,
    is_past_deadline,
    next_look_at,
    record_polls,
)
from dispatch.transport import ChannelAccess, access_to, transport_over

logger = logging.getLogger(__name__)
A = AttemptState
TASK_S = 5.0  # a task goes on that long while there is something to ask, or what it asked has not answered
BEGINS_WITHIN_S = 10.0  # so that it ends before its claim does, and nobody asks the same at the same time
PATIENCE_S = 1.0  # for what an earlier task asked: what takes longer is collected by the next one


def poll_due(clock: Callable[[], datetime]) -> int:
    """Polls what is due until nothing is, or for some seconds; how many polls were recorded.

    What this process asked, no other can collect, and when it polls again nobody knows: so it waits."""
    polling, recorded, awaited = polling_of_this_process(), 0, set[int]()
    ends_at = monotonic() + TASK_S
    while True:
        asked, more_is_due = _ask_due(polling, clock())
        awaited |= asked
        answers = polling.answered(PATIENCE_S, more_is_due)
        _record_all(answers, clock)
        awaited -= {answer.attempt.pk for answer in answers}
        recorded += sum(answer.result is not None for answer in answers)
        if not (answers or awaited) or monotonic() >= ends_at:
            return recorded


def _ask_due(polling: Polling, now: datetime) -> tuple[set[int], bool]:
    """The attempts that it begins to ask about, and whether there may be more than there was room for."""
    channels = channels_due(now)
    room = polling.room(channels)
    if not room:
        return set(), bool(channels)
    # Credentials are opened here, one of each channel: the threads have no database connection. And first:
    # what can't be read then breaks no claim.
    accesses = {channel.pk: _access(channel) for channel in Channel.objects.filter(pk__in=room)}
    claimed = claim_due(room, now + timedelta(seconds=BEGINS_WITHIN_S + settings.POLL_DEADLINE_S), now)
    for attempt in claimed:
        ask = partial(_ask, accesses[attempt.channel_id], attempt.provider_job_id)
        polling.begin(attempt, ask, BEGINS_WITHIN_S)
    return {attempt.pk for attempt in claimed}, len(claimed) == sum(room.values())


def _access(channel: Channel) -> ChannelAccess | PollFailure:
    try:
        return access_to(channel)
    except VaultError as error:
        return PollFailure(False, None, f"the credential can't be opened: {error}")


def _ask(access: ChannelAccess | PollFailure, provider_job_id: str) -> PollResult:
    if isinstance(access, PollFailure):
        return access
    with transport_over(access) as transport:
        return adapter_for(access.provider).poll(transport, provider_job_id)


def _record_all(answers: Sequence[Answered], clock: Callable[[], datetime]) -> None:
    now = clock()
    looks = {each.attempt.pk: look for each in answers if (look := _nothing_new(each, now)) is not None}
    try:
        write_nothing_new(looks.values(), now)
    except Error:
        logger.exception("Polls could not be recorded", extra={"count": len(looks)})
    _record_news([each for each in answers if each.attempt.pk not in looks], clock)
    for each in answers:
        if isinstance(each.result, Exception):
            logger.error("A poll broke", exc_info=each.result, extra={"attempt": each.attempt.public_id})


def _record_news(answers: Sequence[Answered], clock: Callable[[], datetime]) -> None:
    """All in one transaction. One that can't be recorded keeps no other from being: then each has its own."""
    results = {each.attempt.pk: told for each in answers if (told := _told(each.result)) is not None}
    if not results:
        return
    try:
        record_polls(results, clock(), {each.attempt.pk: each.attempt.state_version for each in answers})
    except Exception as error:
        logger.exception("Polls could not be recorded", extra={"attempts": sorted(results)})
        for each in answers if len(results) > 1 else _as_failures(answers, error):
            _record_news([each], clock)


def _told(result: PollResult | Exception | None) -> PollResult | None:
    """What broke the asking is a poll that failed: the attempt's deadlines go on."""
    if isinstance(result, Exception):
        return PollFailure(False, None, f"asking broke: {type(result).__name__}")
    return result


def _as_failures(answers: Sequence[Answered], error: Exception) -> list[Answered]:
    """What is said can't be kept, whenever it is said; but a database that does not answer is asked again at
    the next look."""
    if isinstance(error, OperationalError | InterfaceError):
        return []
    failure = PollFailure(False, None, f"its answer can't be kept: {type(error).__name__}")
    return [replace(each, result=failure) for each in answers if not isinstance(each.result, PollFailure)]


def _nothing_new(answered: Answered, now: datetime) -> Look | None:
    """The next look at an attempt of which the provider says what it said before; None where it says more."""
    attempt, status = answered.attempt, answered.result
    if not isinstance(status, JobStatus) or status.status not in STATE_OF_STATUS:
        return None
    if is_news_of(attempt, status) or attempt.state == A.CANCEL_REQUESTED or is_past_deadline(attempt, now):
        return None
    return Look(attempt, next_look_at(attempt, attempt.quiet_polls + 1, now), status.progress)
