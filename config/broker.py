"""django-q2's queue in the database, told of a new task instead of asking for one fifty times a second.

The library's own broker asks at each interval, in no order, with a statement a task, by the host's clock.
This one waits for PostgreSQL's word, takes a batch in order with one statement, by the database's clock."""

import logging
import multiprocessing
import time
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from catalog.statements import prepared
from dispatch.ringing import package_of

logger = logging.getLogger(__name__)

# How long it waits for a word before it looks all the same: for tasks that come back because nobody finished
# them, and for a word that was lost.
LOOK_AT_LEAST_EVERY_S = 5.0
# A stop takes as long at most.
WAIT_S = 1.0
# A word has its task run at once, and again after this time at the soonest, however often it is said: with
# each job that is admitted a dispatcher would be woken, only to find that another has seen it.
APART_S = 0.2

# How often the processes below this one have taken tasks: they inherit it, and their guard reads it.
batches_taken = multiprocessing.RawValue("L", 0)

_OF_A_ROW = ""  # the word of a task that has one

_ENQUEUE = """
WITH task AS (INSERT INTO django_q_ormq (key, payload, lock) VALUES (%s, %s, clock_timestamp()) RETURNING id)
SELECT id, pg_notify(%s, '') FROM task"""
_ENQUEUE_MANY = """
WITH tasks AS (
    INSERT INTO django_q_ormq (key, payload, lock)
    SELECT %s, payload, clock_timestamp() FROM unnest(%s::text[]) AS payload RETURNING id)
SELECT count(*), pg_notify(%s, '') FROM tasks"""
# Materialized: a plan may ask a subquery again for each row of the table, and each time it locks others.
_TAKE = """
WITH free AS MATERIALIZED (
    SELECT id FROM django_q_ormq WHERE key = %(key)s AND lock < clock_timestamp()
    ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED)
UPDATE django_q_ormq AS task SET lock = clock_timestamp() + make_interval(secs => %(retry_s)s)
FROM free WHERE task.id = free.id RETURNING task.id, task.payload"""


class ListeningBroker(ORM):
    """For Q_CLUSTER's `broker_class`; the queue's name is the cluster's."""

    _listening: Any = None  # the database's connection that gets the word
    _look_at_s = 0.0  # monotonic

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._passed_on_s: dict[str, float] = {}  # by word, monotonic
        self._kept: set[str] = set()  # words that are not passed on yet

    def enqueue(self, task: str) -> int:
        """The word goes out with the caller's transaction, or not at all."""
        with prepared() as cursor:
            cursor.execute(_ENQUEUE, [self.list_key, task, _channel(self.list_key)])
            return int(cursor.fetchone()[0])

    def enqueue_many(self, tasks: list[str]) -> None:
        """As many at once, by one statement and one word."""
        if tasks:
            with prepared() as cursor:
                cursor.execute(_ENQUEUE_MANY, [self.list_key, tasks, _channel(self.list_key)])

    def wake(self, task: str) -> None:
        """The word alone, which goes out with the caller's transaction; who hears it runs the task."""
        with prepared() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [_channel(self.list_key), task])

    def dequeue(self) -> list[tuple[int | None, str]] | None:
        """Id and payload of each task that was taken; None after a wait, to be called again. What only a word
        told of has no id, since there is nothing to acknowledge."""
        try:
            if time.monotonic() >= self._look_at_s:
                # Before the look, which sees what they tell of; and while there is always a row, words that
                # nobody hears pile up in the session.
                self._hear(0)
                taken = self._take()
                if len(taken) < Conf.BULK:  # there are no more, and we are told of the next
                    self._look_at_s = time.monotonic() + LOOK_AT_LEAST_EVERY_S
                if taken:
                    return taken
            self._hear(self._until_due_s() if self._kept else WAIT_S)
            return self._of_words(self._due()) or None
        except (OperationalError, InterfaceError) as error:
            # The library would log, sleep for ten seconds, and have this whole process replaced.
            logger.warning("The queue is not readable and is tried again: %s", error)
            connection.close()
            self._look_at_s = 0
            time.sleep(WAIT_S)
        return None

    def delete(self, task_id: int) -> None:
        """One statement, where the library's takes three."""
        close_old_connections()
        with prepared() as cursor:
            cursor.execute("DELETE FROM django_q_ormq WHERE id = %s", [task_id])

    def _hear(self, wait_s: float) -> None:
        words = self.words(wait_s)
        if _OF_A_ROW in words:
            self._look_at_s = 0
        self._kept |= words - {_OF_A_ROW}

    def words(self, wait_s: float) -> set[str]:
        """What has been said since it was asked last, or is in time: tasks to run, and of a row nothing."""
        self.listen()
        with connection.wrap_database_errors:
            return {word.payload for word in self._listening.notifies(timeout=wait_s, stop_after=1)}

    def listen(self) -> None:
        """Before the first look, so that no task falls between the look and the wait.

        The session is as old as this process: one that broke tells us at the next look or while we wait."""
        connection.ensure_connection()
        if self._listening is not connection.connection:
            with connection.cursor() as cursor:
                cursor.execute(f'LISTEN "{_channel(self.list_key)}"')
            self._listening = connection.connection

    def _take(self) -> list[tuple[int | None, str]]:
        with prepared() as cursor:
            asked = {"key": self.list_key, "most": Conf.BULK, "retry_s": Conf.RETRY}
            cursor.execute(_TAKE, asked)
            taken = sorted(cursor.fetchall())
        batches_taken.value += bool(taken)
        return taken

    def _until_due_s(self) -> float:
        """Of the kept words, the first."""
        return max(0.0, min(map(self._due_at_s, self._kept)) - time.monotonic())

    def _due(self) -> set[str]:
        """Of the kept words those that did not come too soon after the same."""
        now_s = time.monotonic()
        due = {word for word in self._kept if self._due_at_s(word) <= now_s}
        self._kept -= due
        self._passed_on_s |= dict.fromkeys(due, now_s)
        return due

    def _due_at_s(self, word: str) -> float:
        return self._passed_on_s.get(word, -APART_S) + APART_S

    def _of_words(self, tasks: set[str]) -> list[tuple[int | None, str]]:
        batches_taken.value += bool(tasks)
        return [(None, package_of(task, self.list_key)) for task in sorted(tasks)]


def _channel(queue: str) -> str:
    return f"frameyard_queue_{queue}"
