"""The fair queue against a plain model of it: tenants come, are blocked, run dry and come back."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dispatch.fairness import QUANTUM_MS, Member, Ring, come_back

MOST = 200_000
KEYS = range(1, 6)


class PlainTenant:
    def __init__(self, weight: int) -> None:
        self.weight, self.deficit_ms, self.is_new = weight, 0, False
        self.jobs: list[int] = []  # costs, the first goes first
        self.blocked = False
        self.returned, self.lap = True, 0


class FairQueueMachine(RuleBasedStateMachine):
    """The model serves by walking round step by step; the ring must choose the same and leave the same."""

    @initialize(weights=st.lists(st.integers(1, 7), min_size=len(KEYS), max_size=len(KEYS)))
    def begin(self, weights: list[int]) -> None:
        self.tenants = {key: PlainTenant(weight) for key, weight in zip(KEYS, weights, strict=True)}
        self.turn, self.lap = 0, 0

    @rule(key=st.sampled_from(list(KEYS)), costs=st.lists(st.integers(1, MOST), min_size=1, max_size=5))
    def submit(self, key: int, costs: list[int]) -> None:
        tenant = self.tenants[key]
        tenant.returned = tenant.returned or not tenant.jobs
        tenant.jobs += costs

    @rule(key=st.sampled_from(list(KEYS)), blocked=st.booleans())
    def block(self, key: int, blocked: bool) -> None:
        self.tenants[key].blocked = blocked

    @rule(key=st.sampled_from(list(KEYS)))
    def cancel_everything(self, key: int) -> None:
        self.tenants[key].jobs.clear()

    @rule(slots=st.integers(1, 6))
    def scan(self, slots: int) -> None:
        """As many jobs begin as there are slots; the state is read from the rows and written back."""
        ready = [key for key, it in self.tenants.items() if it.jobs and not it.blocked]
        for key in ready:
            self._settle(key)
        before = {key: it.deficit_ms for key, it in self.tenants.items() if key not in ready}
        ring = Ring(
            [
                Member(key, self.tenants[key].weight, self.tenants[key].deficit_ms, self.tenants[key].is_new)
                for key in ready
            ],
            self.turn,
            self.lap,
        )
        for _ in range(slots):
            turn = ring.next()
            expected = self._model_next(ready)
            assert (turn.key if turn else None) == expected
            if turn is None:
                break
            cost = self.tenants[turn.key].jobs.pop(0)
            ring.serve(turn, cost)
            self._model_serve(turn.key, cost)
            if not self.tenants[turn.key].jobs:
                ring.drop(turn.key)
                ready.remove(turn.key)
        for key, member in ring.members.items():
            tenant = self.tenants[key]
            assert (member.deficit_ms, member.is_new) == (tenant.deficit_ms, tenant.is_new)
            tenant.lap = ring.lap
        assert (ring.turn, ring.lap) == (self.turn, self.lap)
        for key, deficit_ms in before.items():
            assert self.tenants[key].deficit_ms == deficit_ms, (
                "who had nothing to start neither gains nor loses"
            )

    def _settle(self, key: int) -> None:
        tenant = self.tenants[key]
        if not tenant.returned:
            return
        credit = max(tenant.deficit_ms, 0)
        back = come_back(Member(key, tenant.weight, tenant.deficit_ms), self.lap - tenant.lap)
        assert back.deficit_ms <= tenant.weight * QUANTUM_MS
        assert back.is_new or back.deficit_ms <= 0, f"a credit of {credit} outlived its jobs"
        tenant.deficit_ms, tenant.is_new, tenant.returned = back.deficit_ms, back.is_new, False

    def _model_next(self, ready: list[int]) -> int | None:
        if not ready:
            return None
        self.passes: list[int] = []
        self.wraps = 0
        for key in sorted(ready):
            if self.tenants[key].is_new:
                return key
        order = sorted(ready)
        trial = {key: self.tenants[key].deficit_ms for key in order}
        place = next((at for at, key in enumerate(order) if key >= self.turn), None)
        if place is None:
            place, self.wraps = 0, 1
        while True:
            key = order[place]
            if trial[key] > 0:
                return key
            trial[key] += QUANTUM_MS * self.tenants[key].weight
            self.passes.append(key)
            place += 1
            if place == len(order):
                place, self.wraps = 0, self.wraps + 1

    def _model_serve(self, key: int, cost: int) -> None:
        tenant = self.tenants[key]
        for passed in self.passes:
            self.tenants[passed].deficit_ms += QUANTUM_MS * self.tenants[passed].weight
        tenant.deficit_ms -= cost
        if tenant.is_new:
            tenant.is_new = tenant.deficit_ms > 0
        else:
            self.turn, self.lap = key, self.lap + self.wraps

    @invariant()
    def deficits_are_bounded(self) -> None:
        for tenant in getattr(self, "tenants", {}).values():
            assert -MOST < tenant.deficit_ms <= tenant.weight * QUANTUM_MS


FairQueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestFairQueue = FairQueueMachine.TestCase
