"""`manage.py why_waiting [JOB]`: what blocks one job, or everything that waits, from stored facts."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.timezone import now

from dispatch.models import Job
from dispatch.queries.waiting import waiting_now
from dispatch.queries.waiting_job import Blocked, JobWaiting, Taken, clocks_of, waiting_of
from dispatch.views.vocabulary import WAITING, WAITING_STEPS, word
from dispatch.views.waiting_words import verdict_sentence
from dispatch.waiting import Clocks


class Command(BaseCommand):
    """Exit 2: there is no such job."""

    help = "Tells why JOB waits, who takes its slots, its place and deadline; without JOB, why anything does."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", metavar="JOB", nargs="?", help="a job's id, job_…")

    def handle(self, *, job: str | None, **_options: Any) -> None:
        for line in _of_all(now()) if job is None else _of_one(_found(job), now()):
            self.stdout.write(line)


def _found(public_id: str) -> Job:
    job = Job.objects.select_related("line__lot__round", "line__tenant").filter(public_id=public_id).first()
    if job is None:
        raise CommandError(f"There is no job {public_id}", returncode=2)
    return job


def _of_all(at: datetime) -> Iterator[str]:
    it = waiting_now(at)
    yield verdict_sentence(it.verdict)
    yield f"Last scan: {_at(it.dispatcher.last_scan_at)}."
    for cluster in it.clusters:
        seen = f"{cluster.workers} workers seen in the last minute, last at {_at(cluster.last_seen_at)}"
        yield f"Cluster {cluster.cluster} on {cluster.host}: {seen}."
    if it.oldest_since is not None:
        waits_s = (at - it.oldest_since).total_seconds()
        yield f"The oldest, {it.oldest[0].public_id}, waits for {waits_s:.0f} s."
    for code, jobs in it.by_code.items():
        yield f"{jobs:>7}  {code}: {word(WAITING, code)}"
    for group in it.groups:
        taken_out = ", ".join(f"{reason} ×{number}" for reason, number in group.reasons.items())
        yield f"{group.jobs:>7}  {group.model}: {group.code}  {taken_out}  {group.round}".rstrip()


def _of_one(job: Job, at: datetime) -> Iterator[str]:
    waiting = waiting_of(job, at)
    if waiting is None:
        yield f"{job.public_id} waits for no supply: it is {job.state}."
        yield _clocks(clocks_of(job, at))
        return
    yield f"{word(WAITING_STEPS, waiting.step)}: {word(WAITING, waiting.code)} ({waiting.code})"
    yield from _times(waiting)
    yield _clocks(clocks_of(job, at))
    for each in waiting.blocked:
        yield f"  • {_blocked(each)}"
    for slot in waiting.taken:
        yield f"  taken by {_taken(slot)}"
    if waiting.round:
        yield f"Evidence: {waiting.round}."


def _times(it: JobWaiting) -> Iterator[str]:
    if it.until is not None:
        yield f"Not before {_at(it.until)}."
    if it.next_probe_at is not None:
        yield f"Next probe of a circuit: {_at(it.next_probe_at)}."
    if it.place is not None:
        yield f"Place {it.place} among its customer's jobs for this model."
    look = _at(it.next_look_at) if it.next_look_at else "at each scan"
    yield f"Deadline {_at(it.deadline_at)}; next look {look}."


def _clocks(it: Clocks) -> str:
    executing = "not begun" if it.executing_s is None else f"{it.executing_s:.0f} s"
    return f"In the queue {it.queued_s:.0f} s; executing: {executing}."


def _blocked(it: Blocked) -> str:
    details = f" ({it.details})" if it.details else ""
    ends = f", until {_at(it.ends_at)}" if it.ends_at else ""
    return f"{it.supply} on {it.channel}, {it.tier}: {it.reason}{details}{ends}"


def _taken(it: Taken) -> str:
    unknown = f", outcome unknown until {_at(it.unknown_until)}" if it.is_unknown else ""
    return f"{it.attempt} of {it.job} at {it.supply}: {it.state} since {_at(it.since)}{unknown}"


def _at(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
