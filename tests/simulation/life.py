"""One life: a few jobs, faults for some minutes, then calm until everything has ended; then the check."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils.module_loading import import_string
from django_q.signing import SignedPackage

from tests.simulation.acts import People
from tests.simulation.checker import Finding, check
from tests.simulation.installation import Installation, is_expected, told
from tests.simulation.scheduler import State, Worker

_BELLS = ("scan", "reconcile", "poll", "begin_recoveries", "housekeeping")
_MOST_STEPS = 400
_CALM_S = 8_000  # longer than every deadline after another
_CALM_TASKS = 200
_GUARD = """
    SELECT job.cancel_requested_at IS NOT NULL AS cancelled, key.revoked_at IS NOT NULL AS revoked,
           attempt.public_id AS attempt
    FROM dispatch_attempt attempt JOIN dispatch_job job ON job.id = attempt.job_id
    JOIN billing_apikey key ON key.id = job.api_key_id WHERE attempt.id = ANY (%s)"""
_DUE = """
    WITH look AS (SELECT state, next_look_at AS at FROM dispatch_attempt WHERE next_look_at IS NOT NULL),
         polled AS (SELECT min(at) AS at FROM look WHERE state IN
             ('accepted', 'provider_queued', 'running', 'cancel_requested', 'outcome_uncertain')),
         reconciled AS (SELECT least(
             (SELECT min(at) FROM look
              WHERE state IN ('submission_uncertain', 'generated', 'fetching', 'abandoned')),
             (SELECT min(expires_at) FROM dispatch_capacitylease WHERE released_at IS NULL),
             (SELECT min(uncertain_deadline_at) FROM dispatch_attempt
              WHERE state = 'outcome_uncertain')) AS at)
    SELECT polled.at AS poll, reconciled.at AS reconcile,
           (SELECT count(*) FROM dispatch_job job WHERE state IN ('queued', 'dispatching') AND NOT EXISTS
               (SELECT FROM dispatch_attempt attempt WHERE attempt.job_id = job.id
                AND attempt.state NOT IN ('succeeded', 'failed', 'cancelled', 'abandoned'))) AS waiting,
           (SELECT min(cooldown_until) FROM (SELECT cooldown_until FROM health_channelhealth
               UNION ALL SELECT cooldown_until FROM health_supplyhealth) AS cooling) AS cooled
    FROM polled, reconciled"""
_OPEN = """
    SELECT (SELECT count(*) FROM dispatch_job
            WHERE state NOT IN ('succeeded', 'failed', 'cancelled', 'expired'))
           AS jobs, (SELECT count(*) FROM dispatch_capacitylease WHERE released_at IS NULL) AS leases,
           (SELECT count(*) FROM django_q_ormq) AS tasks,
           (SELECT count(*) FROM dispatch_attempt
            WHERE state = 'abandoned' AND next_look_at IS NOT NULL) AS late"""


@dataclass
class Outcome:
    """What one life came to."""

    seed: int
    findings: list[Finding]
    faults: Counter[str]
    injected: int
    history: list[str]
    posts: Counter[str]  # by client key, as the provider counted
    states: Counter[str]
    families: tuple[str, ...]
    points: int = 0
    tasks: int = 0


@dataclass
class Life:
    """`left_out`: numbers of faults that are not injected, to find the shortest history."""

    world: Installation
    seed: int
    left_out: frozenset[int] = frozenset()
    broken: list[str] = field(default_factory=list)
    tasks: int = 0
    scans: list[tuple[int, int]] = field(default_factory=list)  # record numbers at a task's begin and end

    def run(self) -> Outcome:
        world = self.world
        world.begin(self.seed, self.left_out)
        self.people = People(world)
        self.dice = world.dice
        self._watched: dict[str, str] = {}
        self._late = 0
        self._keeps_house = self.dice.random() < 0.2
        self._rung: dict[str, Any] = {}
        world.database.words()  # of the life before
        self._said: set[str] = set()
        self._starts: dict[str, int] = {}
        self._next: list[Any] = []
        self._waiting = 0
        self._chaos()
        self._calm()
        self._end_locks()
        findings = check(self)
        posts = Counter(arrival.reference for arrival in world.provider.arrivals)
        states = Counter(row["state"] for row in world.database.rows("SELECT state FROM dispatch_job"))
        families = tuple(sorted(world.adversary.families))
        faults, injected = world.adversary.counts, len(world.adversary.injected)
        return Outcome(
            self.seed,
            findings,
            faults,
            injected,
            list(world.history),
            posts,
            states,
            families,
            world.points,
            self.tasks,
        )

    def _end_locks(self) -> None:
        held = self.world.database.end_lock_holders()
        self.world.awaits.ended |= held
        if held:
            self.broken.append("a lock outlived the task that took it")

    def _chaos(self) -> None:
        scheduler, until = self.world.scheduler, timedelta(seconds=self.dice.uniform(40, 200))
        ends = scheduler.now + until
        posts = self.dice.choice((1, 1, 1, 2, 2, 3))
        for _ in range(_MOST_STEPS):
            if scheduler.now >= ends:
                return
            self.world.adversary.step_clocks()
            if self._resume_one():
                continue
            worker = self._idle_worker()
            if worker is None:
                self._pass_time()
                continue
            if posts and (not self.people.answers or self.dice.random() < 0.2):
                posts -= 1
                self._act(worker, self.people.new_post())
            elif not (self._person(worker) or self._take_task(worker) or self._ring(worker)):
                self._pass_time()

    def _resume_one(self) -> bool:
        ready = self.world.scheduler.ready()
        if not ready or (self.world.scheduler.idle() and self.dice.random() < 0.3):
            return False
        self._resume(self.dice.choice(ready))
        return True

    def _resume(self, worker: Worker) -> None:
        self.world.scheduler.resume(worker)
        self._look_at(worker)

    def _idle_worker(self) -> Worker | None:
        idle = self.world.scheduler.idle()
        return self.dice.choice(idle) if idle else None

    def _person(self, worker: Worker) -> bool:
        adversary = self.world.adversary
        if self.people.pending and self.dice.random() < 0.1 and (act := self.people.again()):
            self._act(worker, act)
            return True
        if (
            adversary.chance("customer", 0.12)
            and (act := self.people.cancel())
            and adversary.inject("cancelled")
        ):
            self._act(worker, act)
            return True
        if adversary.chance("customer", 0.02) and (act := self.people.pry()):
            self._act(worker, act)
            return True
        if adversary.chance("callbacks", 0.25) and (act := self.people.call_back()):
            self._act(worker, act)
            return True
        if adversary.chance("operator", 0.1):
            act = self.people.operate()
            if adversary.inject(f"operator: {act[0]}"):
                self._act(worker, act)
                return True
        return False

    @property
    def clocks_were_stepped(self) -> bool:
        return "clock" in self.world.adversary.families

    def _act(self, worker: Worker, act: tuple[str, Callable[[], None]]) -> None:
        self._start(worker, act[0], act[1], {})

    def _take_task(self, worker: Worker) -> bool:
        return self._take_word(worker) or self._take_row(worker)

    def _take_word(self, worker: Worker) -> bool:
        """What was only said, however often; it is heard in its turn, or with loose bells not at all."""
        self._said |= self.world.database.words()
        if not self._said or self.dice.random() < 0.5:
            return False
        word = self.dice.choice(sorted(self._said))
        self._said.discard(word)
        if not (self.world.adversary.chance("bells", 0.1) and self.world.adversary.inject("bell lost")):
            self._run_task(worker, word, ())
        return True

    def _take_row(self, worker: Worker) -> bool:
        """One task of the queue; with loose bells any of them, and it may stay, or go unheard."""
        tasks = self.world.database.rows("SELECT id, payload FROM django_q_ormq ORDER BY id")
        if not tasks or (self.world.adversary.has("bells") and self.dice.random() < 0.2):
            return False
        task = self.dice.choice(tasks) if self.world.adversary.has("bells") else tasks[0]
        adversary = self.world.adversary
        if not (adversary.chance("bells", 0.15) and adversary.inject("bell rung twice")):
            self.world.database.link.execute("DELETE FROM django_q_ormq WHERE id = %s", [task["id"]])
        if adversary.chance("bells", 0.1) and adversary.inject("bell lost"):
            return True
        package = SignedPackage.loads(task["payload"])
        self._run_task(worker, package["func"], package["args"])
        return True

    def _run_task(self, worker: Worker, name: str, args: tuple[Any, ...]) -> None:
        function = import_string(name)
        function = getattr(function, "__wrapped__", function)
        ids = [each for each in args if isinstance(each, int)]
        began = {row["attempt"]: row for row in self.world.database.rows(_GUARD, ids)} if ids else {}
        doing = " ".join([name.rpartition(".")[2], *map(str, args)])
        self._start(worker, doing, partial(function, *args), began)

    def _ring(self, worker: Worker) -> bool:
        """What the pulse rings each second, mostly where there is something to do; a bell may be late."""
        if self.dice.random() < 0.15:
            return False
        due = self._due() if self.dice.random() < 0.97 else list(_BELLS[:3])
        if not due:
            return False
        name = self.dice.choice(due)
        self._rung[name] = self.world.scheduler.now
        self._run_task(worker, f"dispatch.tasks.{name}", ())
        return True

    def _due(self) -> list[str]:
        """The bells whose tasks have something to do by now, at most once a second each."""
        found, now = self.world.database.row(_DUE), self.world.scheduler.clock()
        self._next = [found["poll"], found["reconcile"], found["cooled"] if found["waiting"] else None]
        self._waiting = found["waiting"]
        due = [name for name in ("poll", "reconcile") if found[name] is not None and found[name] <= now]
        if found["waiting"]:
            due.append("scan")
            if found["cooled"] is not None and found["cooled"] <= now:
                due.append("begin_recoveries")
        if self._keeps_house and self._is_rung_ago("housekeeping", 300):
            due.append("housekeeping")
        return [name for name in due if self._is_rung_ago(name, 0.9)]

    def _is_rung_ago(self, name: str, seconds: float) -> bool:
        last = self._rung.get(name)
        return last is None or (self.world.scheduler.now - last).total_seconds() >= seconds

    def _pass_time(self) -> None:
        """To the next thing that is due, or only a little."""
        scheduler = self.world.scheduler
        wake = scheduler.next_wake()
        if wake is not None and not scheduler.idle():
            scheduler.now = max(scheduler.now, wake)
            return
        step_s = self.dice.choice((0.5, 1.0, 3.0))
        if not self._due() and not self._waiting and self.dice.random() < 0.7:
            step_s = self._until_due(most_s=self.dice.choice((5.0, 30.0, 100.0)))
        scheduler.now += timedelta(seconds=step_s)

    def _until_due(self, most_s: float) -> float:
        now = self.world.scheduler.clock()
        waits = [(at - now).total_seconds() for at in self._next if at is not None]
        return min(max(min(waits, default=most_s), 0.2), most_s)

    def _start(self, worker: Worker, doing: str, task: Callable[[], None], began: dict[str, Any]) -> None:
        worker.began, worker.doing = began, doing
        self._begun_at(worker)
        self.world.run_in(worker, doing, task)
        self._look_at(worker)

    def _begun_at(self, worker: Worker) -> None:
        if "operator" in self.world.adversary.families or worker.doing.startswith("scan"):
            self._starts[worker.name] = self._record_number()

    def _record_number(self) -> int:
        return int(self.world.database.row("SELECT coalesce(max(seq), 0) AS at FROM simulation.record")["at"])

    def _look_at(self, worker: Worker) -> None:
        """Notes how a task ended."""
        if worker.state is not State.IDLE or not worker.doing:
            return
        self.tasks += 1
        if worker.name in self._starts:
            self.scans.append((self._starts.pop(worker.name), self._record_number()))
        if worker.killed:
            self.world.tell(f"{worker.name} died in {worker.doing}")
        elif worker.error is not None:
            self.world.tell(f"{worker.name} broke off {worker.doing}: {told(worker.error)}")
            if not is_expected(worker.error):
                self.broken.append(f"{worker.doing}: {told(worker.error)}")
        worker.doing = ""

    def _calm(self) -> None:
        world = self.world
        world.adversary.quiet = True
        for worker in world.scheduler.workers:
            worker.skew = timedelta()
        world.tell("faults end")
        self._let_all_finish()
        worker = world.scheduler.workers[0]
        if "operator" in world.adversary.families:
            self._start(worker, "heal", self.people.heal, {})
        for _ in range(len(self.people.pending)):
            if act := self.people.again():
                self._act(worker, act)
        self.calm_since = world.scheduler.now
        most = self.tasks + _CALM_TASKS
        while not self._is_over() and self.tasks < most and self._calm_s() < _CALM_S:
            self._quiet_step(worker)

    def _calm_s(self) -> float:
        return (self.world.scheduler.now - self.calm_since).total_seconds()

    def _let_all_finish(self) -> None:
        scheduler = self.world.scheduler
        while len(scheduler.idle()) < len(scheduler.workers):
            ready = scheduler.ready()
            if ready:
                self._resume(ready[0])
                continue
            scheduler.unlock()
            wake = scheduler.next_wake()
            if wake is not None and not scheduler.ready():
                scheduler.now = max(scheduler.now, wake)
            elif wake is None and not scheduler.ready():
                self._free_the_locked()

    def _free_the_locked(self) -> None:
        """Everybody who is not done waits for a lock, and nobody is left who would release it."""
        held = self.world.database.end_lock_holders()
        self.world.awaits.ended |= held
        if held:
            self.broken.append("a lock outlived the task that took it, and others wait for it for ever")

    def _quiet_step(self, worker: Worker) -> None:
        while True:
            while self._take_task(worker):
                self._let_all_finish()
            due = self._due()
            if not due:
                break
            for name in due:
                self._rung[name] = self.world.scheduler.now
                self._run_task(worker, f"dispatch.tasks.{name}", ())
                self._let_all_finish()
            if self.tasks > _MOST_STEPS + _CALM_TASKS:
                return
        self.world.scheduler.now += timedelta(seconds=self._until_due(self._patience_s()) + 0.1)

    def _patience_s(self) -> float:
        """Between two looks of the scan at what waits: short at first, since its deadline is a few minutes; a
        clock that was put back by an hour makes that an hour more."""
        if not self._waiting:
            return _CALM_S
        return 10.0 if self._calm_s() < 400 else 60.0

    def _is_over(self) -> bool:
        left = self.world.database.row(_OPEN)
        if left["late"] and not left["jobs"] and not left["leases"] and not left["tasks"] and self._late < 3:
            self._late += 1  # what was given up is looked for once more, so that a late discovery is seen
            self.world.scheduler.now += timedelta(minutes=16)
            return False
        return not (left["jobs"] or left["leases"] or left["tasks"])
