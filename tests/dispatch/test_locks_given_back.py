"""A lock of a session that can't be given back goes with the session: nobody waits for it for ever."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection

from catalog.providers.types import Unknown
from dispatch.departures import Ended
from dispatch.models import Attempt
from dispatch.scan_turn import SCAN_LOCK
from dispatch.sending import Sender, may_still_send
from dispatch.services.dispatch_scan import scan
from dispatch.services.record_submission import record_submissions
from tests.dispatch.queue_yard import Yard
from tests.dispatch.test_fair_queue_concurrency import at_once
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)


def no_unlock(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    if "pg_advisory_unlock" in sql:
        raise OperationalError("canceling statement due to user request")
    return execute(sql, params, many, context)


def is_free(lock: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        return bool(cursor.fetchone()[0])


def test_the_turn_to_scan_is_free_again_and_what_was_started_stays() -> None:
    yard = Yard()
    yard.job(yard.tenant(), yard.model(1))
    with pytest.raises(OperationalError), connection.execute_wrapper(no_unlock):
        scan(lambda: yard.now)
    assert at_once(is_free, [SCAN_LOCK]) == [True]
    assert yard.scan() == [], "it was started before"


def test_a_sender_keeps_the_locks_of_those_on_their_way_when_one_can_not_be_given_back() -> None:
    with Sender() as sender:
        sender.announce([5, 6])
        with connection.execute_wrapper(no_unlock):
            sender.has_sent([5])
        assert at_once(may_still_send, [5, 6]) == [True, True]
    assert at_once(may_still_send, [5, 6]) == [False, False]


def test_an_answer_that_can_not_be_recorded_ends_no_session_that_works_however_old_it_is() -> None:
    never_saved = Attempt(pk=7)
    with Sender() as sender:
        sender.announce([5])
        connection.close_at = time.monotonic() - 1
        assert record_submissions([Ended(never_saved, Unknown("body", "it broke"))], NOW) != []
        assert at_once(may_still_send, [5]) == [True]


def test_a_sender_that_can_give_nothing_back_gives_up_its_session() -> None:
    with connection.execute_wrapper(no_unlock), Sender() as sender:
        sender.announce([5])
    assert at_once(may_still_send, [5]) == [False]
