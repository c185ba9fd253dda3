"""The provider's side: the simulator's own world and faces, and its log as the ground truth of a life.

At each submission that arrives it also notes what the database held at that moment, so that the checker can
tell what was known when the money was spent."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from catalog.simulator.faces.face import Request
from catalog.simulator.outputs import PREFIX, output_answer
from catalog.simulator.scenario import Call, Do, Timing
from catalog.simulator.server import FACES
from catalog.simulator.wire import Answer
from catalog.simulator.world import Task, World
from tests.simulation.database import Database
from tests.simulation.scheduler import Scheduler
from tests.simulation.wire import Sent

ROTATED = "-rotated"  # a channel's later credential is the same account's
_PROGRESS = (0.37, "37%", None, 101, -5, "soon", [1], 1e308)

_WITNESS = """
    SELECT attempt.public_id, attempt.number, attempt.state, attempt.job_id,
           job.public_id AS job, job.state AS job_state
    FROM dispatch_attempt attempt JOIN dispatch_job job ON job.id = attempt.job_id
    WHERE attempt.client_request_key = %s"""
_EARLIER = """
    SELECT client_request_key, state, error_code FROM dispatch_attempt
    WHERE job_id = %s AND client_request_key <> %s ORDER BY number"""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A submission that reached the provider. `task_id` is empty where nothing was created."""

    number: int
    at: float
    reference: str
    task_id: str
    outcome: str
    ended_as: str  # of a task made at once: the error in its own answer, where it came to nothing
    attempt: Mapping[str, Any]  # as committed at that moment; empty: no such attempt
    earlier: tuple[Mapping[str, Any], ...]  # the job's other attempts, as committed
    at_work: tuple[str, ...]  # other references of the same job that this provider has not ended in vain
    guard: Mapping[str, Any]  # what the database held when the task that sent it began


@dataclass
class Provider:
    """`decide` says what becomes of a call; `oddity` may spoil a status document."""

    scheduler: Scheduler
    database: Database
    decide: Callable[[Call], Do]
    odd: Callable[[str], bool]
    tell: Callable[[str], None]
    arrivals: list[Arrival] = field(default_factory=list)
    world: "LoggedWorld" = field(init=False)

    def begin(self, seed: int) -> None:
        self.arrivals.clear()
        self.world = LoggedWorld(self, seed)

    def answer(self, sent: Sent) -> Answer:
        parts = urlsplit(sent.target)
        origin = f"{'https' if sent.secure else 'http'}://{sent.headers.get('host', '')}"
        if parts.path.startswith(PREFIX):
            name = parts.path.removeprefix(PREFIX)
            return output_answer(name, parts.query, sent.headers, self.world, dict(FACES))
        for face in FACES.values():
            if parts.path.startswith(face.prefix + "/"):
                headers = {**sent.headers, "authorization": _account(sent.headers.get("authorization", ""))}
                path = parts.path.removeprefix(face.prefix)
                request = Request(sent.method, path, parts.query, headers, sent.body, origin)
                return self._with_oddities(sent, face.answer(request, self.world))
        return Answer(404, b"no such face", {"Content-Type": "text/plain"})

    def _with_oddities(self, sent: Sent, answer: Answer) -> Answer:
        if sent.method != "GET" or answer.status != 200 or not self.odd("progress"):
            return answer
        document = json.loads(answer.body)
        if not isinstance(document, dict) or "id" not in document:
            return answer
        document["progress"] = self.world.dice.choice(_PROGRESS)
        return replace(answer, body=json.dumps(document).encode())

    def arrived(self, call: Call, task_id: str, outcome: str, ended_as: str = "") -> None:
        attempt = self.database.row(_WITNESS, call.reference)
        earlier = self.database.rows(_EARLIER, attempt["job_id"], call.reference) if attempt else []
        at_work = tuple(
            each["client_request_key"] for each in earlier if self.world.works_on(each["client_request_key"])
        )
        worker = self.scheduler.current
        guard = worker.began.get(attempt.get("public_id"), {}) if worker else {}
        number = len(self.arrivals) + 1
        self.arrivals.append(
            Arrival(
                number,
                self.world.now(),
                call.reference,
                task_id,
                outcome,
                ended_as,
                attempt,
                tuple(earlier),
                at_work,
                guard,
            )
        )
        self.tell(f"provider: {'took' if task_id else 'refused'} {call.reference} ({outcome})")


class LoggedWorld(World):
    """The simulator's world on the scheduler's time, asking the adversary in place of a script."""

    def __init__(self, provider: Provider, seed: int) -> None:
        self._provider = provider
        self.dice = random.Random(seed)
        super().__init__(seed, Timing(), lambda: provider.scheduler.now.timestamp())

    def decide(self, call: Call) -> Do:
        return self._provider.decide(call)

    def refuse(self, call: Call, outcome: str) -> None:
        super().refuse(call, outcome)
        self._provider.arrived(call, "", outcome)

    def accept(self, face: str, prefix: str, call: Call, request: Mapping[str, Any], do: Do) -> Task:
        task = super().accept(face, prefix, call, request, do)
        ended_as = do.fail if task.id.startswith("img-") else ""
        self._provider.arrived(call, task.id, do.error_after_acceptance or do.answer, ended_as)
        return task

    def known(self) -> list[Task]:
        return list(self._tasks.values())

    def works_on(self, reference: str) -> bool:
        """Whether a task of that reference is at work or has made something. One that had failed at any time
        may have been told of, and is believed to have: what its provider says later takes nothing back."""
        tasks = [task for task in self._tasks.values() if task.reference == reference]
        return any(all(map(_is_alive, self._words(task))) for task in tasks)

    def _words(self, task: Task) -> list[str]:
        passed = [word for at, word in task.life.changes() if at <= self.now()]
        return [*passed, task.life.word(self.now())]


def _is_alive(word: str) -> bool:
    return word.strip().casefold() not in ("failed", "cancelled", "canceled", "expired")


def _account(authorization: str) -> str:
    return authorization.partition(ROTATED)[0]
