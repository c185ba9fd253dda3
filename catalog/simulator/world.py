"""What the simulated providers know: accounts, tasks, and a log of every submission they saw.

The log is the ground truth of tests: it counts what was accepted per client reference."""

import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from catalog.simulator.scenario import Account, Call, Do, Life, Script, Timing, decide, life_of

_LOGGED_POSTS = 100_000


@dataclass(slots=True)
class Task:
    """One job of a provider. `request` is what was posted; it never leaves the process."""

    id: str
    face: str
    account: str
    model: str
    reference: str
    request: Mapping[str, Any] = field(repr=False)
    do: Do
    life: Life
    number: int
    before: str = ""  # the id of the task of its kind before it
    output_asked: int = 0  # times that its output was fetched
    locators: int = 0  # times that its address was handed out
    calls: int = 0  # callbacks made


@dataclass(frozen=True, slots=True)
class Post:
    """One submission as the provider saw it, whatever it answered."""

    number: int
    at: float
    account: str
    model: str
    reference: str
    task_id: str  # empty: not accepted
    outcome: str


class World:
    """Thread-safe. `clock` gives seconds since the epoch."""

    def __init__(self, seed: int, timing: Timing, clock: Callable[[], float]) -> None:
        self._seed, self._timing, self._clock = seed, timing, clock
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self.script = Script()
            self._dice = random.Random(self._seed)
            self._advanced_s = 0.0
            self._numbers = 0
            self._tasks: dict[str, Task] = {}
            self._posts: deque[Post] = deque(maxlen=_LOGGED_POSTS)
            self._accepted: Counter[str] = Counter()
            self._last: dict[str, Task] = {}  # by the prefix of its id
            self.to_call: deque[Task] = deque()  # tasks whose callbacks nobody has planned yet
            self.changed.notify_all()

    def now(self) -> float:
        return self._clock() + self._advanced_s

    def advance(self, seconds: float) -> None:
        """Lets time pass at once."""
        with self._lock:
            self._advanced_s += seconds
            self.changed.notify_all()

    def add_script(self, script: Script) -> None:
        with self._lock:
            self.script = self.script.with_more(script)

    def account(self, key: str) -> Account:
        return self.script.accounts.get(key, Account())

    def decide(self, call: Call) -> Do:
        with self._lock:
            do, self.script = decide(self.script, call, self._dice)
            return do

    def refuse(self, call: Call, outcome: str) -> None:
        with self._lock:
            self._log(call, "", outcome)

    def accept(self, face: str, prefix: str, call: Call, request: Mapping[str, Any], do: Do) -> Task:
        """Creates the task; from here on it costs money, whether or not anybody is told."""
        with self._lock:
            self._numbers += 1
            life = life_of(do, self._timing, self.now(), self._dice, self._slot_free_at(call.account))
            suffix = sha256(f"{self._seed}:{self._numbers}".encode()).hexdigest()[:10]
            task_id = f"{prefix}{self._numbers:06d}-{suffix}"
            task = Task(
                task_id, face, call.account, call.model, call.reference, request, do, life, self._numbers
            )
            task.before, self._last[prefix] = self._last.get(prefix, task).id, task
            self._tasks[task.id] = task
            self._accepted[call.reference] += 1
            self._log(call, task.id, do.answer)
            if request.get("callback_url"):
                self.to_call.append(task)
                self.changed.notify_all()
            return task

    def count_call(self, task: Task) -> None:
        with self._lock:
            task.calls += 1
            self.changed.notify_all()

    def await_call(self, task: Task, most_s: float = 10) -> None:
        """Until the task's first callback was made; it may come before its submission is answered."""
        with self.changed:
            self.changed.wait_for(lambda: task.calls > 0, most_s)

    def _log(self, call: Call, task_id: str, outcome: str) -> None:
        name = account_name(call.account)
        number = self._posts[-1].number + 1 if self._posts else 1
        self._posts.append(Post(number, self.now(), name, call.model, call.reference, task_id, outcome))

    def _slot_free_at(self, account: str) -> float:
        """When the account can run one more, those before it being served first."""
        concurrency = self.account(account).concurrency
        if concurrency is None:
            return 0
        ends = sorted(task.life.end_at for task in self._unfinished(account))
        return ends[-concurrency] if len(ends) >= concurrency else 0

    def _unfinished(self, account: str) -> list[Task]:
        now = self.now()
        return [
            task
            for task in self._tasks.values()
            if task.account == account and task.life.cancelled_at is None and task.life.end_at > now
        ]

    def is_at_limit(self, account: str) -> bool:
        with self._lock:
            limit = self.account(account).limit
            return limit is not None and len(self._unfinished(account)) >= limit

    def task(self, task_id: str, account: str | None = None) -> Task | None:
        """None, too, when another account asks."""
        with self._lock:
            task = self._tasks.get(task_id)
            return task if task is not None and account in (None, task.account) else None

    def newest_first(self, face: str, account: str, since: float) -> list[Task]:
        with self._lock:
            now = self.now()
            return [
                task
                for task in reversed(self._tasks.values())
                if (task.face, task.account) == (face, account)
                and task.life.created_at >= since
                and now >= task.life.created_at + task.do.hidden_from_list_s
            ]

    def cancel(self, task: Task) -> None:
        with self._lock:
            task.life = replace(task.life, cancelled_at=self.now())

    def erase(self, task: Task) -> None:
        with self._lock:
            self._tasks.pop(task.id, None)

    def count_output(self, task: Task) -> int:
        """How often its output was asked for before."""
        with self._lock:
            task.output_asked += 1
            return task.output_asked - 1

    def log(self) -> dict[str, Any]:
        """`accepted` counts accepted submissions by client reference; `posts` holds every submission seen."""
        with self._lock:
            posts = [asdict(post) for post in self._posts]
            return {"accepted": dict(self._accepted), "posts": posts, "now": self.now()}


def account_name(key: str) -> str:
    """An account's name in the log, which somebody may read who must not see its key."""
    return f"account-{sha256(key.encode()).hexdigest()[:8]}"
