"""Reads the provider's log and the database after a life, and nothing else; each finding names its invariant.

The numbers are those of the working list of invariants; the questions that can be asked of the final rows
alone are the product's own, asked of it by `check_invariants` too."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from dispatch.invariants import violations
from dispatch.lifecycle import FINAL_JOB_STATES
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.routing.replay import replay
from health.circuit import Subject
from health.services.replay_recorded import replay_recorded
from tests.simulation.installation import CANARIES
from tests.simulation.provider import Arrival
from tests.simulation.timeline import Timeline

if TYPE_CHECKING:
    from tests.simulation.life import Life

_IN_FLIGHT = ("submitting", "submission_uncertain")
_MOST_REFUSALS = 4
_DRIFTS = "SELECT subject, details FROM health_alert WHERE code = 'lease_drift'"
_SEARCHED = (
    "dispatch_attempt",
    "dispatch_job",
    "dispatch_providerevent",
    "dispatch_providerjob",
    "dispatch_selectionround",
    "health_alert",
    "health_healthevent",
    "catalog_auditentry",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`invariant` begins with its number in the list of invariants."""

    invariant: str
    found: str


def check(life: "Life") -> list[Finding]:
    """All findings, those of one invariant together."""
    found = [Finding(invariant, told) for check in CHECKS for invariant, told in check(life)]
    timeline = Timeline(life.world.database.record(), life.scans)
    return found + [Finding(invariant, told) for invariant, told in timeline.violations()]


type Told = Iterator[tuple[str, str]]


def _final_rows(life: "Life") -> Told:
    for each in violations():
        if (
            life.clocks_were_stepped
            and each.invariant == "a second attempt begins only after the first failed"
        ):
            continue  # it compares two hosts' clocks
        number = _NUMBER_OF_QUERY.get(each.invariant.split(" ")[0], "")
        yield f"{number}{each.invariant}", f"{each.subject}: {each.found}"


_NUMBER_OF_QUERY = {"counted": "I5 ", "booked": "I8 "}


def _submissions(life: "Life") -> Told:
    arrivals = life.world.provider.arrivals
    counts = Counter(arrival.reference for arrival in arrivals)
    for reference, count in counts.items():
        if count > 1:
            yield "I4 one submission for each client key", f"{reference} was posted {count} times"
    for arrival in arrivals:
        state = arrival.attempt.get("state")
        if state is None:
            yield "I4 the intent is committed before the effect", f"no attempt has sent {arrival.reference}"
        elif state not in _IN_FLIGHT:
            yield (
                "I4 the intent is committed before the effect",
                f"{arrival.reference} was {state} when it came",
            )
        for other in arrival.at_work:
            yield (
                "I3 no second submission while the first may be at work",
                f"{arrival.reference} came while {other} was at work",
            )
        for earlier in arrival.earlier:
            if earlier["state"] != "failed" and arrival.attempt.get("number") == 2:
                yield (
                    "I3 no second submission while the first may be at work",
                    f"{arrival.reference} came while the first attempt was {earlier['state']}",
                )


def _guards(life: "Life") -> Told:
    for arrival in life.world.provider.arrivals:
        guard = arrival.guard
        for name, number in (("cancelled", "I23"), ("revoked", "I13")):
            if guard.get(name):
                yield f"{number} nothing is sent for what was {name} before", arrival.reference


def _tasks_known(life: "Life") -> Told:
    """What the provider took is either adopted, or given up openly; never called absent. A call that works
    while one waits may tell its end in its own answer: who heard that calls it what the provider did."""
    rows = {
        row["client_request_key"]: row
        for row in life.world.database.rows(
            "SELECT attempt.client_request_key, attempt.state, attempt.error_code, attempt.error_message,"
            " attempt.accepted_at, provider_job.provider_job_id FROM dispatch_attempt attempt"
            " LEFT JOIN dispatch_providerjob provider_job ON provider_job.attempt_id = attempt.id"
        )
    }
    for arrival in life.world.provider.arrivals:
        row = rows.get(arrival.reference)
        if not arrival.task_id or row is None:
            continue
        if row["state"] == "failed" and row["accepted_at"] is None and not _heard_its_end(arrival, row):
            said = f"{row['error_code']}: {row['error_message']}"
            yield "I7 what the provider took is not called absent", f"{arrival.reference} failed as {said}"
        adopted = row["provider_job_id"]
        if adopted and _is_tellable(arrival) and adopted != arrival.task_id:
            yield "I7 an attempt adopts its own task", f"{arrival.reference} adopted {adopted}"


def _is_tellable(arrival: Arrival) -> bool:
    """Whether the id in its answer shows whose it is. One told again is refused where an attempt holds it (a
    constraint does that); where its first answer met nobody, nobody can tell that it is another's."""
    return arrival.task_id.startswith("cgt-") and arrival.outcome != "repeated_id"


def _heard_its_end(arrival: Arrival, row: Mapping[str, Any]) -> bool:
    return bool(arrival.ended_as) and row["error_message"].startswith(f"{arrival.ended_as}:")


def _proofs(life: "Life") -> Told:
    if life.clocks_were_stepped:
        return
    apart = settings.RECOVERY_ABSENCE_READS_APART_S
    for row in life.world.database.rows(
        "SELECT attempt.public_id, max(event.at) - min(event.at) AS apart FROM dispatch_attempt attempt"
        " LEFT JOIN dispatch_providerevent event ON event.attempt_id = attempt.id AND event.kind = 'recover'"
        " AND event.outcome = 'absent' WHERE attempt.error_message LIKE '%two complete listings%' GROUP BY 1"
    ):
        if row["apart"] is None or row["apart"].total_seconds() < apart - 1:
            yield "I3 absence is proved by two readings apart", f"{row['public_id']}: {row['apart']}"


def _books(life: "Life") -> Told:
    for table, subject in (("billing_creditentry", "job"), ("billing_providerusageentry", "attempt")):
        for row in life.world.database.rows(
            f"SELECT {subject} AS subject, kind, count(*) FROM {table} WHERE {subject} <> ''"
            " GROUP BY 1, 2 HAVING count(*) > 1"
        ):
            yield "I8 each entry is written once", f"{row['subject']} has {row['count']} of {row['kind']}"


def _circuits(life: "Life") -> Told:
    subjects = life.world.database.rows("SELECT DISTINCT subject, subject_id FROM health_healthevent")
    for row in subjects:
        for step in replay_recorded(Subject(row["subject"]), row["subject_id"]):
            if step.problem:
                yield "I9 recorded changes give the circuit that is stored", step.problem


def _snapshots(life: "Life") -> Told:
    rounds = life.world.database.rows("SELECT public_id, snapshot FROM dispatch_selectionround")
    documents = recorded_documents(*(row["snapshot"] for row in rounds))
    for row in rounds:
        for difference in replay(row["snapshot"], documents)[:1]:
            yield "I11 a snapshot, routed again, gives the same", f"{row['public_id']}: {difference}"


def _answers(life: "Life") -> Told:
    jobs = {row["public_id"] for row in life.world.database.rows("SELECT public_id FROM dispatch_job")}
    told: dict[str | None, set[str]] = defaultdict(set)
    for answer in life.people.answers:
        if answer.key is None:
            if answer.status in (200, 202):
                yield "I13 a stranger never sees or cancels a job", f"{answer.body}: {answer.status}"
            continue
        if answer.status == 201:
            told[answer.key].add(answer.content)
            made = json.loads(answer.content)["id"]
            if made not in jobs:
                yield "I12 every job that was promised exists", f"{made} of {answer.key} is gone"
    for key, contents in told.items():
        if len(contents) > 1:
            yield "I12 one key, one answer", f"{key} was answered with {len(contents)} bodies"


def _callbacks(life: "Life") -> Told:
    for status in life.people.forged:
        if status < 300:
            yield "I13 a forged callback is refused", str(status)


def _refusals(life: "Life") -> Told:
    for row in life.world.database.rows(
        "SELECT job.content_fingerprint AS content, channel.provider, count(*) FROM dispatch_attempt attempt"
        " JOIN dispatch_job job ON job.id = attempt.job_id JOIN catalog_channel channel ON channel.id ="
        " attempt.channel_id WHERE attempt.error_category = 'content' GROUP BY 1, 2"
    ):
        if row["count"] > _MOST_REFUSALS:
            yield "I15 content is refused four times at most", f"{row['provider']}: {row['count']}"


def _outputs(life: "Life") -> Told:
    for row in life.world.database.rows("SELECT * FROM dispatch_asset"):
        path = Path(settings.MEDIA_DIR) / row["path"]
        wanted = {"video/mp4": b"ftyp", "image/jpeg": b"\xff\xd8"}.get(row["content_type"], b"?")
        if not path.is_file() or path.stat().st_size != row["size_bytes"]:
            yield "I18 what is delivered lies in the store", row["path"]
        elif wanted not in path.read_bytes()[:16]:
            yield "I18 what is delivered is of its type", f"{row['path']}: {row['content_type']}"


def _secrets(life: "Life") -> Told:
    canaries = [*CANARIES.values(), *life.world.secrets.values()]
    for line in life.world.log.lines:
        if any(canary in line for canary in canaries) or "signature=" in line:
            yield "I20 no secret in logs", line[:120]
    for table in _SEARCHED:
        query = f"SELECT 1 FROM {table} AS row WHERE row::text LIKE ANY (%s) LIMIT 1"
        if life.world.database.rows(query, [f"%{canary}%" for canary in canaries]):
            yield "I20 no secret in rows", table


def _calls(life: "Life") -> Told:
    for host in life.world.network.called_in_transaction:
        yield "I22 no provider is called within a transaction", host


def _ends(life: "Life") -> Told:
    final = ", ".join(f"'{state}'" for state in sorted(FINAL_JOB_STATES))
    for row in life.world.database.rows(
        f"SELECT public_id, state FROM dispatch_job WHERE state NOT IN ({final})"
    ):
        yield "I25 every job ends", f"{row['public_id']} is {row['state']}"
    for row in life.world.database.rows(
        "SELECT attempt.public_id, attempt.state FROM dispatch_capacitylease lease"
        " JOIN dispatch_attempt attempt"
        " ON attempt.id = lease.attempt_id WHERE lease.released_at IS NULL"
    ):
        yield "I25 every slot returns", f"{row['public_id']} is {row['state']}"
    for row in life.world.database.rows(
        "SELECT subject, details FROM health_alert WHERE code = 'lease_drift'"
    ):
        yield "I5 counted slots equal the leases", f"{row['subject']}: {row['details']}"


def _breakages(life: "Life") -> Told:
    for told in [*life.broken, *life.world.log.broken]:
        yield "no task breaks", told


CHECKS: tuple[Callable[[Any], Told], ...] = (
    _submissions,
    _guards,
    _tasks_known,
    _proofs,
    _books,
    _circuits,
    _snapshots,
    _answers,
    _callbacks,
    _refusals,
    _outputs,
    _secrets,
    _calls,
    _final_rows,
    _ends,
    _breakages,
)
