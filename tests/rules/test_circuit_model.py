"""Any sequence of evidence, against a model that states each rule as plainly as it can be said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from health.circuit import Change, Circuit, Evidence, Kind, State, Subject, advance, effective_capacity
from health.parameters import Parameters

STEPS_S = st.sampled_from([1, 1, 1, 1, 30, 59, 60, 61, 120])
CODES = st.sampled_from(["network", "network", "network", "overloaded", "model_not_found", "auth"])
# The second reaches in a few pieces what the defaults reach in twenty.
PARAMETERS = st.sampled_from(
    [
        Parameters(),
        Parameters(rate_samples=3, open_after=9, channel_network_open_after=3, cooldowns_s=(5, 30, 60)),
    ]
)


class PlainModel:
    """Keeps every piece and looks at all of them again each time."""

    def __init__(self, subject: Subject, parameters: Parameters) -> None:
        self.subject, self.parameters = subject, parameters
        self.state, self.epoch, self.successes, self.openings = "healthy", 0, 0, 0
        self.until: datetime | None = None
        self.history: list[Evidence] = []  # since the last opening or enabling
        self.since_degraded = 0

    def see(self, piece: Evidence) -> None:
        if piece.kind is Kind.TICK and self.state == "circuit_open" and self.until and piece.at >= self.until:
            self.state, self.until = "probing", None
        elif piece.kind is Kind.DISABLE:
            self.state, self.until, self.successes = "disabled", None, 0
        elif piece.kind is Kind.ENABLE and self.state == "disabled":
            self.state, self.epoch, self.history = "probing", self.epoch + 1, []
        elif piece.kind in (Kind.SUCCESS, Kind.FAILURE) and self._accepts(piece):
            self.history.append(piece)
            self._judge(piece)

    def _accepts(self, piece: Evidence) -> bool:
        return self.state not in ("circuit_open", "disabled") and piece.epoch in (None, self.epoch)

    def _judge(self, piece: Evidence) -> None:
        if piece.kind is Kind.SUCCESS:
            self._success()
        elif self._opens(piece):
            self._open(piece.at)
        elif self._own(piece):
            self.since_degraded = 0
            if self._failures_in_a_row() >= (2 if self.subject is Subject.SUPPLY else 1):
                self.state = "degraded"

    def _success(self) -> None:
        if self.state in ("probing", "recovering"):
            self.successes += 1
            self.state = {1: "probing", 5: "healthy"}.get(self.successes, "recovering")
        elif self.state == "degraded":
            self.since_degraded += 1
            if self.since_degraded == 3:
                self.state = "healthy"
        if self.state == "healthy":
            self.openings = self.openings if self.successes < 5 and self.since_degraded < 3 else 0
            self.successes = self.since_degraded = 0

    def _open(self, at: datetime) -> None:
        self.openings += 1
        ladder = self.parameters.cooldowns_s
        cooldown_s = ladder[min(self.openings, len(ladder)) - 1]
        self.state, self.until = "circuit_open", at + timedelta(seconds=cooldown_s)
        self.epoch, self.successes, self.since_degraded, self.history = self.epoch + 1, 0, 0, []

    def _opens(self, piece: Evidence) -> bool:
        returning = self.state in ("probing", "recovering")
        if self.subject is Subject.SUPPLY:
            rate = self._rate(piece.at)
            return self._own(piece) and (returning or self._too_many_in_a_row() or rate)
        own = self._own(piece) and (
            returning or piece.code in ("auth", "balance", "permission") or self._too_many_in_a_row()
        )
        return own or (not returning and self._shared(piece))

    def _own(self, piece: Evidence) -> bool:
        return piece.kind is Kind.FAILURE and piece.scope == self.subject.value

    def _too_many_in_a_row(self) -> bool:
        supply = self.subject is Subject.SUPPLY
        limit = self.parameters.open_after if supply else self.parameters.channel_network_open_after
        return self._failures_in_a_row() >= limit

    def _failures_in_a_row(self) -> int:
        row = 0
        for piece in reversed(self.history):
            if piece.kind is Kind.SUCCESS:
                break
            row += self._own(piece)
        return row

    def _rate(self, now: datetime) -> bool:
        recent = [one for one in self.history if (now - one.at).total_seconds() <= 120]
        samples = [self._own(one) for one in recent if one.kind is Kind.SUCCESS or self._own(one)]
        return len(samples) >= self.parameters.rate_samples and sum(samples) * 2 > len(samples)

    def _shared(self, piece: Evidence) -> bool:
        if piece.code not in ("overloaded", "internal_retryable", "network"):
            return False
        supplies = {
            one.supply
            for one in self.history
            if one.kind is Kind.FAILURE
            and one.code == piece.code
            and (piece.at - one.at).total_seconds() <= 60
        }
        return len(supplies) >= 2


class CircuitAgainstModel(RuleBasedStateMachine):
    @initialize(subject=st.sampled_from(Subject), parameters=PARAMETERS)
    def begin(self, subject: Subject, parameters: Parameters) -> None:
        self.circuit, self.model, self.parameters = (
            Circuit(subject),
            PlainModel(subject, parameters),
            parameters,
        )
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.ever: list[Change] = []

    def see(self, piece: Evidence) -> None:
        self.circuit, change = advance(self.circuit, piece, self.parameters)
        self.ever += [change] if change else []
        self.model.see(piece)

    @rule(
        step_s=STEPS_S,
        supply=st.sampled_from("ab"),
        stale=st.integers(0, 8),
        times=st.sampled_from([1, 1, 1, 5]),
    )
    def succeeds(self, step_s: int, supply: str, stale: int, times: int) -> None:
        for _ in range(times):
            self.see(self.piece(Kind.SUCCESS, step_s if times == 1 else 1, supply=supply, stale=stale))

    @rule(
        step_s=STEPS_S,
        supply=st.sampled_from("ab"),
        scope=st.sampled_from(["supply", "supply", "channel"]),
        code=CODES,
        stale=st.integers(0, 8),
    )
    def fails(self, step_s: int, supply: str, scope: str, code: str, stale: int) -> None:
        self.see(self.piece(Kind.FAILURE, step_s, scope=scope, code=code, supply=supply, stale=stale))

    @rule(step_s=STEPS_S)
    def sees_no_fault_of_its_own(self, step_s: int) -> None:
        self.see(self.piece(Kind.NONE, step_s))

    @precondition(lambda self: self.circuit.state is State.CIRCUIT_OPEN)
    @rule(wait_s=st.sampled_from([0, 30, 60, 600]))
    def is_looked_at(self, wait_s: int) -> None:
        self.see(self.piece(Kind.TICK, wait_s))

    @precondition(lambda self: len(self.ever) > 4)
    @rule(step_s=STEPS_S)
    def is_disabled_and_enabled(self, step_s: int) -> None:
        self.see(self.piece(Kind.DISABLE, step_s))
        self.see(self.piece(Kind.SUCCESS, step_s, supply="a"))
        self.see(self.piece(Kind.ENABLE, step_s))

    def piece(self, kind: Kind, step_s: int, stale: int = 0, **words: str) -> Evidence:
        self.now += timedelta(seconds=step_s)
        epoch = self.circuit.epoch - 1 if stale == 8 else self.circuit.epoch
        return replace(Evidence(self.now, kind, epoch), **words)

    @invariant()
    def the_model_agrees(self) -> None:
        model = self.model
        expected = (model.state, model.successes, model.epoch, model.until, model.openings)
        circuit = self.circuit
        got = (
            circuit.state,
            circuit.recovery_successes,
            circuit.epoch,
            circuit.cooldown_until,
            circuit.openings,
        )
        assert got == expected

    @invariant()
    def what_is_stored_fits_together(self) -> None:
        circuit = self.circuit
        assert (circuit.cooldown_until is not None) == (circuit.state is State.CIRCUIT_OPEN)
        assert effective_capacity(circuit.state, circuit.recovery_successes, 3) in range(4)

    @invariant()
    def every_change_begins_where_the_last_one_ended(self) -> None:
        for one, next_one in zip(self.ever, self.ever[1:], strict=False):
            assert (one.after.state, one.after.epoch) == (next_one.before.state, next_one.before.epoch)


CircuitAgainstModel.TestCase.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
TestCircuitAgainstModel = CircuitAgainstModel.TestCase
