"""What goes wrong in one life, decided by its seed: which families of faults, how often, and where.

Each life has its own few families (lives in which everything breaks at once find less). Every injected fault
has a number, and a replay may leave some out: so the shortest history that still fails is found."""

import random
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import OperationalError

from catalog.simulator.scenario import Call, Do
from tests.simulation.database import LOST, fall_victim
from tests.simulation.scheduler import Killed, Scheduler, Worker

FAMILIES = (
    "connecting",
    "sending",
    "answers",
    "created_then_5xx",
    "refusals",
    "contents",
    "fates",
    "polls",
    "listing",
    "outputs",
    "callbacks",
    "database",
    "death",
    "pause",
    "bells",
    "clock",
    "operator",
    "customer",
)
_SPOILT_AFTER_CREATING = (
    "drop_after_acceptance",
    "reset_after_acceptance",
    "hang",
    "truncated",
    "reset_in_body",
    "slow",
    "slow_headers",
    "endless",
    "empty",
    "not_json",
    "html",
    "list",
    "nan",
    "deep",
    "long_number",
    "twice_a_key",
    "missing_id",
    "wrong_type_id",
    "repeated_id",
    "garbage",
)
_NOTHING_CREATED = ("drop_before_response", "reset_before_response", "redirect")
_REFUSALS = (
    ("ServerOverloaded", 0, "5"),
    ("ServerOverloaded", 0, "120"),
    ("ModelAccountRpmRateLimitExceeded", 0, ""),
    ("QuotaExceeded", 0, "60"),
    ("ModelLoadingError", 0, ""),
    ("InvalidParameter", 0, ""),
    ("ModelNotOpen", 0, ""),
    ("AuthenticationError", 0, ""),
    ("AccountOverdueError", 0, ""),
    ("AccessDenied", 0, ""),
    ("SomethingNew", 422, ""),
    ("SomethingNew", 409, ""),
    ("InternalServiceError", 500, ""),
)
_CONTENT = "InputTextSensitiveContentDetected"
_CONTENT_FORMS = (400, 403, 500, 200)
_FATES = (
    {"fail": "InternalServiceError"},
    {"fail": "OutputVideoSensitiveContentDetected"},
    {"fail": "SomethingNew"},
    {"without_output": True},
    {"without_output": True, "fail": "OutputVideoSensitiveContentDetected"},
    {"run_s": -1.0},
    {"run_s": 900.0},
    {"sequence": ((0, "queued"), (5, "running"), (20, "queued"), (30, "running"), (50, "succeeded"))},
    {"sequence": ((0, "running"), (15, "queued"), (60, "succeeded"))},
    {"sequence": (*((6 * step, ("running", "queued")[step % 2]) for step in range(12)), (75, "succeeded"))},
    {"sequence": ((0, "running"), (10, "succeeded"), (12, "failed"), (14, "running"))},
    {"sequence": ((0, "queued"), (10, "paused_for_audit"), (40, "succeeded"))},
    {"sequence": ((0, "running"), (20, "expired"))},
    {"sequence": ((0, "running"), (20, "Canceled"))},
    {"sequence": ((0, ""), (20, " Succeeded "))},
)
_OUTPUTS = (
    "missing",
    "expired",
    "wrong_type",
    "truncated",
    "empty",
    "slow",
    "too_large",
    "endless",
    "redirect",
)
_MORE_OUTPUTS = ("playlist", "needs_header")
_BAD_ANSWERS = (
    "hang",
    "truncated",
    "html",
    "list",
    "deep",
    "long_number",
    "empty",
    "garbage",
    "redirect",
    "slow",
)
# How much likelier a fault is where something was or will be made known than at any other statement.
_WEIGHT = {"statement": 1.0, "commit": 6.0, "committed": 6.0, "connect": 8.0, "send": 8.0, "answered": 12.0}


@dataclass
class Adversary:
    """`left_out` are numbers of faults that a replay does not inject."""

    scheduler: Scheduler
    end_session: Callable[[], None]
    tell: Callable[[str], None]
    families: Collection[str] = ()
    left_out: Collection[int] = ()
    quiet: bool = True
    injected: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    dice: random.Random = field(default_factory=random.Random)

    def begin(self, seed: int, left_out: Collection[int]) -> None:
        self.dice = random.Random(seed)
        self.left_out, self.quiet = left_out, False
        self.injected, self.counts = [], Counter()
        self.families = frozenset(self.dice.sample(FAMILIES, self.dice.randint(2, 7)))
        self.switching = self.dice.choice((0.0, 0.02, 0.1, 0.3))
        self.rate = self.dice.choice((0.3, 1.0, 2.0))
        self.list_down_until = self._list_down()

    def _list_down(self) -> float:
        """Seconds since the life's begin for which the provider's list can't be read."""
        if "listing" not in self.families:
            return 0
        return self.dice.choice((0.0, 120.0, 2_000.0))

    def has(self, family: str) -> bool:
        return not self.quiet and family in self.families

    def chance(self, family: str, probability: float) -> bool:
        return self.has(family) and self.dice.random() < probability

    def inject(self, kind: str) -> bool:
        """Counts a fault that is about to happen; false where a replay leaves it out."""
        self.injected.append(kind)
        number = len(self.injected)
        if number in self.left_out:
            return False
        self.counts[kind] += 1
        self.tell(f"fault {number}: {kind}")
        return True

    def at_point(self, worker: Worker, point: str, detail: str) -> None:
        if self.quiet:
            return
        weight = _WEIGHT.get(point, 1.0) * self.rate
        if self.chance("death", 0.0006 * weight) and self.inject(f"death at {point}"):
            worker.killed = True
            self.end_session()  # first, so that no clean-up of the dying reaches the database
            raise Killed
        if self.chance("pause", 0.0016 * weight) and self.inject(f"pause at {point}"):
            # Often only just longer than a lease lasts, so that nobody has looked at it yet.
            self.scheduler.park(self.dice.choice((self.dice.uniform(60, 63), self.dice.uniform(60, 120))))
        if point in ("statement", "commit", "committed"):
            self._database_fault(point, detail, weight)
        if self.switching and self.dice.random() < self.switching:
            self.scheduler.park()

    def _database_fault(self, point: str, detail: str, weight: float) -> None:
        if not self.chance("database", 0.0008 * weight) or detail.startswith(
            ("ROLLBACK", "RELEASE", "SAVEPOINT")
        ):
            return
        if point == "statement" and self.dice.random() < 0.4:
            code = self.dice.choice(("40P01", "40001"))
            if self.inject(f"database victim {code}"):
                fall_victim(code)
        elif self.inject(f"database lost: {_PLACES[point]}"):
            self.end_session()
            raise OperationalError(LOST)

    def weather(self, step: str, detail: str) -> None:
        """The network's own faults; raised as sockets raise them."""
        if step in ("connect", "handshake") and self.chance("connecting", 0.25):
            self._unreachable(step)
        if step in ("send", "answered") and self.chance("sending", 0.12):
            kind = self.dice.choice(
                ("reset", "pipe", "timeout") if step == "send" else ("reset", "timeout", "close")
            )
            if self.inject(f"{'while sending' if step == 'send' else 'after it was read'}: {kind}"):
                self._broken(kind)

    def _unreachable(self, step: str) -> None:
        kind = self.dice.choice(
            ("tls alert", "tls reset", "tls hang") if step == "handshake" else _CONNECTING
        )
        if not self.inject(f"connecting: {kind}"):
            return
        match kind:
            case "dns":
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            case "refused":
                raise ConnectionRefusedError(111, "Connection refused")
            case "tls alert":
                raise ssl.SSLError(1, "sslv3 alert handshake failure")
            case "tls reset":
                raise ConnectionResetError(104, "Connection reset by peer")
            case _:
                self.scheduler.wait(10)
                raise TimeoutError("timed out")

    def _broken(self, kind: str) -> None:
        if kind == "reset":
            raise ConnectionResetError(104, "Connection reset by peer")
        if kind == "timeout":
            self.scheduler.wait(60)
            raise TimeoutError("timed out")
        raise BrokenPipeError(32, "Broken pipe")

    def decide(self, call: Call) -> Do:
        match call.call:
            case "submit":
                return self._of_submission(call)
            case "list":
                return self._of_list()
            case _:
                return self._of_look()

    def _of_submission(self, call: Call) -> Do:
        do = Do(queue_s=self.dice.choice((0.0, 3.0, 25.0)), run_s=self.dice.choice((2.0, 20.0, 60.0)))
        do = replace(do, **self._fate())
        if self.chance("contents", 0.5) and self.inject("content refused"):
            return Do(error=_CONTENT, status=self.dice.choice(_CONTENT_FORMS))
        if self.chance("refusals", 0.4):
            code, status, retry_after = self.dice.choice(_REFUSALS)
            if self.inject(f"refused: {code}"):
                return Do(error=code, status=status, retry_after=retry_after)
        if self.chance("created_then_5xx", 0.4) and self.inject("created, then 5xx"):
            status = self.dice.choice((500, 502, 503, 504))
            return replace(do, error_after_acceptance="InternalServiceError", status=status)
        if self.chance("answers", 0.5):
            answer = self.dice.choice((*_SPOILT_AFTER_CREATING, *_NOTHING_CREATED))
            if self.inject(f"answer: {answer}"):
                return replace(do, answer=answer)
        if self.chance("answers", 0.2) and self.inject("answer: later than anybody waits"):
            return replace(do, latency_s=self.dice.choice((35.0, 65.0, 100.0)))
        return do

    def _fate(self) -> dict[str, Any]:
        """Of the task that is made: how it ends, what its output is like, where it is listed."""
        fate: dict[str, Any] = {}
        if self.chance("fates", 0.5):
            chosen = self.dice.choice(_FATES)
            if self.inject(f"fate: {', '.join(map(str, chosen.values()))}"):
                fate |= chosen
        if self.chance("outputs", 0.6):
            fate |= self._output()
        if self.chance("listing", 0.4) and self.inject("listed late"):
            # A list may lag; how long is what the second reading, a minute later, is for. A worker that
            # stood still between its last look and its first byte takes up that same minute.
            calm = not self.families & {"pause", "clock"}  # type: ignore[operator]
            fate["hidden_from_list_s"] = self.dice.uniform(85, 140) if calm else self.dice.uniform(1, 20)
        if self.chance("listing", 0.2) and self.inject("listed without our reference"):
            fate["without_reference"] = True
        return fate

    def _output(self) -> dict[str, Any]:
        if self.dice.random() < 0.4:
            statuses = tuple(self.dice.choice((403, 404, 500, 504)) for _ in range(self.dice.randint(1, 3)))
            return {"output_statuses": statuses} if self.inject("output: not at once") else {}
        if self.dice.random() < 0.2:
            return {"output_lifetime_s": 5.0} if self.inject("output: soon expired") else {}
        output = self.dice.choice((*_OUTPUTS, *_MORE_OUTPUTS))
        return {"output": output} if self.inject(f"output: {output}") else {}

    def _of_list(self) -> Do:
        began = self.scheduler.now.timestamp() - self.list_began
        if self.has("listing") and began < self.list_down_until and self.inject("list can't be read"):
            return Do(error="InternalServiceError")
        if self.chance("polls", 0.3):
            return self._bad_look("list")
        return Do()

    def _of_look(self) -> Do:
        return self._bad_look("status") if self.chance("polls", 0.35) else Do()

    def _bad_look(self, call: str) -> Do:
        if self.dice.random() < 0.5:
            answer = self.dice.choice(_BAD_ANSWERS)
            return Do(answer=answer) if self.inject(f"{call}: {answer}") else Do()
        code, retry_after = self.dice.choice(
            (
                ("InternalServiceError", ""),
                ("ResourceNotFound", ""),
                ("ModelAccountRpmRateLimitExceeded", "90"),
            )
        )
        if call == "list" and code == "ResourceNotFound":
            code = "InternalServiceError"
        return Do(error=code, retry_after=retry_after) if self.inject(f"{call}: {code}") else Do()

    def odd(self, what: str) -> bool:
        return self.chance("fates", 0.3) and self.inject(f"odd {what}")

    def step_clocks(self) -> None:
        if not self.chance("clock", 0.05):
            return
        if self.dice.random() < 0.5:
            step = self.dice.choice((-90, 90, -3600, 3600))
            if self.inject(f"clock stepped by {step} s"):
                self.scheduler.skew = timedelta(seconds=step)
        else:
            worker = self.dice.choice(self.scheduler.workers)
            skew = self.dice.choice((-90, -5, 5, 90))
            if self.inject(f"clock of one host off by {skew} s"):
                worker.skew = timedelta(seconds=skew)

    @property
    def list_began(self) -> float:
        return self._began

    def started_at(self, moment: float) -> None:
        self._began = moment


_CONNECTING = ("dns", "refused", "timeout")
_PLACES = {
    "statement": "before a statement",
    "commit": "before the commit",
    "committed": "after the commit, before the reply",
}
