"""Whose job begins next: deficit round robin over service classes and their tenants, in turn over end users.

Pure. A ring knows nothing of jobs, only of costs in provider milliseconds. It serves a member while its
deficit is above zero and charges what was served, so a deficit falls below zero by less than one job and
rises above zero by at most one quantum: over any window, what two always waiting members were served differs
from their weighted shares by no more than one quantum and one largest job."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

CLASSES: Final = ("interactive", "standard", "batch")
QUANTUM_MS: Final = 10_000  # a tenth of a usual job: small turns follow the weights closely


@dataclass(slots=True)
class Member:
    """One class or one tenant. `deficit_ms`: what it may still take; below zero, a debt."""

    key: int
    weight: int
    deficit_ms: int = 0
    is_new: bool = False  # came back from having nothing: goes before the ring, until its quantum is used

    def share(self, quantum_ms: int) -> int:
        return quantum_ms * self.weight


@dataclass(frozen=True, slots=True)
class Turn:
    """Who is next, and what has to happen to the others first. Nothing did yet: `Ring.serve` does it."""

    key: int
    circles: int = 0  # whole ones, in which everybody gets a share, since nobody had anything left
    passed: tuple[int, ...] = ()  # got their share on the last way to this member
    laps: int = 0
    is_new: bool = False


class Ring:
    """The members that have something to start, in the order of their keys; who has not is not in it.

    Who is left out, for whatever reason, neither gains nor loses: only a ring that goes by gives shares."""

    def __init__(
        self, members: Iterable[Member], turn: int = 0, lap: int = 0, quantum_ms: int = QUANTUM_MS
    ) -> None:
        self.members = {member.key: member for member in members}
        self.turn, self.lap, self._quantum_ms = turn, lap, quantum_ms
        self._order = sorted(self.members)
        self._new = sorted(key for key, member in self.members.items() if member.is_new)

    def __len__(self) -> int:
        return len(self._order)

    def next(self) -> Turn | None:
        """None when nobody is left."""
        if not self._order:
            return None
        for key in self._new:
            if self.members[key].deficit_ms > 0:
                return Turn(key, is_new=True)
        return self._walk()

    def upcoming(self, most: int) -> list[int]:
        """Who will probably be next, the nearest first: for reading ahead."""
        start = bisect_left(self._order, self.turn)
        around = self._order[start:] + self._order[:start]
        return list(dict.fromkeys([*self._new, *around]))[:most]

    def serve(self, turn: Turn, cost_ms: int) -> None:
        """The member of `turn` began a job of this cost."""
        if turn.circles:
            for key in self._order:
                self._give_share(key, turn.circles)
        for key in turn.passed:
            self._give_share(key, 1)
        member = self.members[turn.key]
        member.deficit_ms -= cost_ms
        if turn.is_new:
            if member.deficit_ms <= 0:
                self._no_longer_new(member)
            return
        self.turn, self.lap = turn.key, self.lap + turn.laps

    def drop(self, key: int) -> None:
        """It has nothing more that could start now."""
        place = bisect_left(self._order, key)
        if place < len(self._order) and self._order[place] == key:
            del self._order[place]
        if key in self._new:
            self._new.remove(key)

    def _walk(self) -> Turn:
        """From the member at turn on: the first with something left; who has nothing gets a share."""
        start = bisect_left(self._order, self.turn)
        circles = self._circles_needed(start)
        passed: list[int] = []
        for step in range(len(self._order)):
            place = (start + step) % len(self._order)
            member = self.members[self._order[place]]
            if member.deficit_ms + circles * member.share(self._quantum_ms) > 0:
                wrapped = start + step >= len(self._order)
                return Turn(member.key, circles, tuple(passed), circles + wrapped)
            passed.append(member.key)
        raise AssertionError("after the circles needed somebody has something left")

    def _circles_needed(self, start: int) -> int:
        """In one sum, however large the debts are."""
        least: int | None = None
        for step in range(len(self._order)):
            member = self.members[self._order[(start + step) % len(self._order)]]
            if member.deficit_ms > 0:
                return 0
            needed = -member.deficit_ms // member.share(self._quantum_ms) + 1
            least = needed if least is None else min(least, needed)
        return least or 0

    def _give_share(self, key: int, times: int) -> None:
        member = self.members[key]
        member.deficit_ms += times * member.share(self._quantum_ms)

    def _no_longer_new(self, member: Member) -> None:
        member.is_new = False
        self._new.remove(member.key)


def come_back(member: Member, laps: int, quantum_ms: int = QUANTUM_MS) -> Member:
    """A tenant that had nothing waiting has something again; `laps`: how often the ring went by meanwhile.

    Credit is lost at once. A debt is worked off by the laps that went by, never beyond zero. Who owes nothing
    and was gone for a lap at least is new: one that comes and goes gains nothing by it."""
    share = member.share(quantum_ms)
    debt = min(0, min(0, member.deficit_ms) + laps * share)
    if debt < 0 or laps < 1:
        return Member(member.key, member.weight, debt)
    return Member(member.key, member.weight, share, is_new=True)


@dataclass(frozen=True, slots=True)
class Pick:
    """The next tenant, by class; to be given back to `FairQueue.serve` or `FairQueue.drop`."""

    service_class: str
    customer: int
    class_turn: Turn
    tenant_turn: Turn


class FairQueue:
    """The ring of classes over the rings of their tenants."""

    def __init__(self, classes: Ring, tenants: Mapping[str, Ring]) -> None:
        self.classes, self.tenants = classes, tenants
        for service_class, key in CLASS_KEYS.items():
            if service_class not in tenants or not len(tenants[service_class]):
                classes.drop(key)

    def next(self) -> Pick | None:
        class_turn = self.classes.next()
        if class_turn is None:
            return None
        service_class = CLASS_OF_KEY[class_turn.key]
        tenant_turn = self.tenants[service_class].next()
        assert tenant_turn is not None, "a class without tenants is not in the ring"  # noqa: S101
        return Pick(service_class, tenant_turn.key, class_turn, tenant_turn)

    def serve(self, pick: Pick, cost_ms: int) -> None:
        self.classes.serve(pick.class_turn, cost_ms)
        self.tenants[pick.service_class].serve(pick.tenant_turn, cost_ms)

    def drop(self, service_class: str, customer: int) -> None:
        """This tenant has nothing more of that class that could start now."""
        self.tenants[service_class].drop(customer)
        if not len(self.tenants[service_class]):
            self.classes.drop(CLASS_KEYS[service_class])


CLASS_KEYS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(CLASSES, start=1)}
CLASS_OF_KEY: Final[Mapping[int, str]] = {number: name for name, number in CLASS_KEYS.items()}


@dataclass(frozen=True, slots=True)
class Head:
    """A waiting job as the order inside its tenant sees it."""

    job: int
    line: int
    end_user: str
    queue_at: float  # seconds; arrival, as the priority moved it
    cost_ms: int


class TenantHeads:
    """A tenant's waiting jobs, as far as they were read: in turn over end users, then by virtual arrival."""

    def __init__(self, last_end_user: str = "") -> None:
        self.last_end_user = last_end_user
        self._by_user: dict[str, list[Head]] = {}  # nearest last
        self._users: list[str] = []

    def put(self, heads: Iterable[Head]) -> None:
        for head in heads:
            if head.end_user not in self._by_user:
                self._by_user[head.end_user] = []
                insort(self._users, head.end_user)
            self._by_user[head.end_user].append(head)
        for waiting in self._by_user.values():
            waiting.sort(key=lambda head: (head.queue_at, head.job), reverse=True)

    def next(self) -> Head | None:
        """Of the end user after the last one that was served."""
        if not self._users:
            return None
        place = bisect_left(self._users, self.last_end_user)
        if place < len(self._users) and self._users[place] == self.last_end_user:
            place += 1
        return self._by_user[self._users[place % len(self._users)]][-1]

    def take(self, head: Head, served: bool) -> None:
        """It began (`served`), or can't begin now: either way it is not asked again."""
        waiting = self._by_user[head.end_user]
        waiting.remove(head)
        if not waiting:
            self._forget(head.end_user)
        if served:
            self.last_end_user = head.end_user

    def drop_line(self, line: int) -> None:
        """Nothing of this line can start now."""
        for user in list(self._users):
            kept = [head for head in self._by_user[user] if head.line != line]
            self._by_user[user] = kept
            if not kept:
                self._forget(user)

    def _forget(self, user: str) -> None:
        del self._by_user[user]
        self._users.remove(user)
