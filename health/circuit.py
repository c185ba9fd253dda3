"""The circuit of a channel or a supply: (state, evidence, now, parameters) -> (state', change); pure.

One machine serves both; they differ only in what counts as a failure and in the rules that open."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from health.parameters import Parameters


class State(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CIRCUIT_OPEN = "circuit_open"
    PROBING = "probing"
    RECOVERING = "recovering"
    DISABLED = "disabled"


class Subject(StrEnum):
    CHANNEL = "channel"
    SUPPLY = "supply"


class Kind(StrEnum):
    """What a piece of evidence is. The first three are an attempt's; the others are ours."""

    SUCCESS = "success"
    FAILURE = "failure"
    NONE = "none"  # content and request errors: no effect, ever
    TICK = "tick"  # the reconciler looks
    PROBE = "probe"  # an operator does not wait for the rest of the cooldown
    CHECK_FAILED = "check_failed"  # the adapter's free account check, at the end of a cooldown
    DISABLE = "disable"
    ENABLE = "enable"
    ENABLE_HEALTHY = "enable_healthy"  # the operator's explicit choice


class Cause(StrEnum):
    """Which rule fired; kept with each change."""

    REPEATED_FAILURES = "repeated_failures"
    FAILURE_RATE = "failure_rate"
    ACCOUNT_REFUSED = "account_refused"
    CONNECT_FAILURES = "connect_failures"
    SAME_CODE_ON_SUPPLIES = "same_code_on_supplies"
    RECOVERY_FAILED = "recovery_failed"
    COOLDOWN_PASSED = "cooldown_passed"
    ACCOUNT_CHECK_FAILED = "account_check_failed"
    PROBED_BY_OPERATOR = "probed_by_operator"
    RECOVERY_STEP = "recovery_step"
    RECOVERED = "recovered"
    RESTORED = "restored"
    DISABLED_BY_OPERATOR = "disabled_by_operator"
    ENABLED_BY_OPERATOR = "enabled_by_operator"


RUNNING = (State.HEALTHY, State.DEGRADED)
RETURNING = (State.PROBING, State.RECOVERING)
SUCCESSES_TO_RECOVER = 5
_RECOVERY_PERCENT = {2: 25, 3: 50, 4: 75}
_ACCOUNT_CODES = ("auth", "permission", "balance")
_SHARED_CODES = ("overloaded", "internal_retryable", "network")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece. An attempt gives exactly one; `epoch` is the one it was created under, None the current."""

    at: datetime
    kind: Kind
    epoch: int | None = None
    scope: str = ""  # of a failure: supply or channel
    code: str = ""  # of a failure: the normalized error code
    supply: str = ""


@dataclass(frozen=True, slots=True)
class Samples:
    """Accepted pieces of one moment, for the failure rate."""

    at: datetime
    failures: int
    successes: int


@dataclass(frozen=True, slots=True)
class Correlation:
    """A failure that other supplies of the channel may share."""

    at: datetime
    code: str
    supply: str


@dataclass(frozen=True, slots=True)
class Circuit:
    """Everything the machine remembers of its subject."""

    subject: Subject
    state: State = State.HEALTHY
    epoch: int = 0  # grows at each opening and each enabling
    recovery_successes: int = 0
    failures: int = 0  # in a row
    successes: int = 0  # since the last failure, while degraded
    openings: int = 0  # since it last was healthy: the place on the cooldown ladder
    cooldown_until: datetime | None = None
    window: tuple[Samples, ...] = ()
    correlations: tuple[Correlation, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What an operator can see of a step: the rule that fired, from where to where."""

    cause: Cause
    before: Circuit
    after: Circuit


def effective_capacity(state: str, recovery_successes: int, configured: int) -> int:
    """Slots in force of `configured` slots; percentages round up, and recovering keeps one slot closed."""
    if state in RUNNING:
        return configured
    if state == State.PROBING:
        return min(1, configured)
    if state == State.RECOVERING:
        share = -(-configured * _RECOVERY_PERCENT[recovery_successes] // 100)
        return min(share, configured - 1) if configured > 1 else configured
    return 0


def advance(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> tuple[Circuit, Change | None]:
    """The circuit after one piece, and the change if an operator could see one.

    "Now" is `evidence.at`: cooldowns count from the failure, not from when it was read."""
    after, cause = _STEPS[evidence.kind](circuit, evidence, parameters)
    if cause is None or _visible(after) == _visible(circuit):
        return after, None
    return after, Change(cause, circuit, after)


type _Step = tuple[Circuit, Cause | None]


def _visible(circuit: Circuit) -> tuple[object, ...]:
    return circuit.state, circuit.recovery_successes, circuit.epoch, circuit.cooldown_until


def _none(circuit: Circuit, _evidence: Evidence, _parameters: Parameters) -> _Step:
    return circuit, None


def _tick(circuit: Circuit, evidence: Evidence, _parameters: Parameters) -> _Step:
    if not cooldown_passed(circuit, evidence.at):
        return circuit, None
    return replace(circuit, state=State.PROBING, cooldown_until=None), Cause.COOLDOWN_PASSED


def _probe(circuit: Circuit, _evidence: Evidence, _parameters: Parameters) -> _Step:
    """As after the cooldown: one slot, and the place on the ladder stays."""
    if circuit.state != State.CIRCUIT_OPEN:
        return circuit, None
    return replace(circuit, state=State.PROBING, cooldown_until=None), Cause.PROBED_BY_OPERATOR


def cooldown_passed(circuit: Circuit, now: datetime) -> bool:
    """Whether the reconciler's next look would begin the recovery."""
    return circuit.cooldown_until is not None and now >= circuit.cooldown_until


def _check_failed(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    """The same cooldown again: no attempt was spent, so this is no further opening."""
    if not cooldown_passed(circuit, evidence.at):
        return circuit, None
    until = evidence.at + _cooldown(circuit.openings, parameters)
    return replace(circuit, cooldown_until=until), Cause.ACCOUNT_CHECK_FAILED


def _disable(circuit: Circuit, _evidence: Evidence, _parameters: Parameters) -> _Step:
    after = replace(circuit, state=State.DISABLED, recovery_successes=0, cooldown_until=None)
    return after, Cause.DISABLED_BY_OPERATOR


def _enable(circuit: Circuit, evidence: Evidence, _parameters: Parameters) -> _Step:
    if circuit.state != State.DISABLED:
        return circuit, None
    state = State.HEALTHY if evidence.kind == Kind.ENABLE_HEALTHY else State.PROBING
    return _forgotten(replace(circuit, state=state, epoch=circuit.epoch + 1)), Cause.ENABLED_BY_OPERATOR


def _success(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    if not _counts(circuit, evidence):
        return circuit, None
    circuit = replace(_sampled(circuit, evidence, parameters), failures=0)
    if circuit.state in RETURNING:
        return _recovered_a_step(circuit)
    if circuit.state == State.DEGRADED:
        return _restored_a_step(circuit, parameters)
    return circuit, None


def _recovered_a_step(circuit: Circuit) -> _Step:
    successes = circuit.recovery_successes + 1
    if successes == SUCCESSES_TO_RECOVER:
        return _healthy(circuit), Cause.RECOVERED
    state = State.RECOVERING if successes in _RECOVERY_PERCENT else State.PROBING
    return replace(circuit, state=state, recovery_successes=successes), Cause.RECOVERY_STEP


def _restored_a_step(circuit: Circuit, parameters: Parameters) -> _Step:
    successes = circuit.successes + 1
    if successes < parameters.restore_after:
        return replace(circuit, successes=successes), None
    return _healthy(circuit), Cause.RESTORED


def _healthy(circuit: Circuit) -> Circuit:
    return replace(circuit, state=State.HEALTHY, recovery_successes=0, successes=0, openings=0)


def _failure(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    if not _counts(circuit, evidence):
        return circuit, None
    if circuit.subject == Subject.SUPPLY:
        return _supply_failure(circuit, evidence, parameters)
    return _channel_failure(circuit, evidence, parameters)


def _supply_failure(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    if evidence.scope != "supply":
        return circuit, None
    circuit = _failed(_sampled(circuit, evidence, parameters))
    if circuit.state in RETURNING:
        return _opened(circuit, evidence, parameters), Cause.RECOVERY_FAILED
    if circuit.failures >= parameters.open_after:
        return _opened(circuit, evidence, parameters), Cause.REPEATED_FAILURES
    if _rate_exceeded(circuit, parameters):
        return _opened(circuit, evidence, parameters), Cause.FAILURE_RATE
    if circuit.failures >= parameters.degrade_after:
        return replace(circuit, state=State.DEGRADED), Cause.REPEATED_FAILURES
    return circuit, None


def _channel_failure(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    circuit = _correlated(circuit, evidence, parameters)
    if evidence.scope == "channel":
        circuit, cause = _own_channel_failure(circuit, evidence, parameters)
        if circuit.state == State.CIRCUIT_OPEN:
            return circuit, cause
    else:
        cause = None
    if circuit.state in RUNNING and _shared_by_supplies(circuit, evidence, parameters):
        return _opened(circuit, evidence, parameters), Cause.SAME_CODE_ON_SUPPLIES
    return circuit, cause


def _own_channel_failure(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> _Step:
    circuit = _failed(circuit)
    if evidence.code in _ACCOUNT_CODES:
        return _opened(circuit, evidence, parameters), Cause.ACCOUNT_REFUSED
    if circuit.state in RETURNING:
        return _opened(circuit, evidence, parameters), Cause.RECOVERY_FAILED
    if circuit.failures >= parameters.channel_network_open_after:
        return _opened(circuit, evidence, parameters), Cause.CONNECT_FAILURES
    return replace(circuit, state=State.DEGRADED), Cause.CONNECT_FAILURES


def _counts(circuit: Circuit, evidence: Evidence) -> bool:
    """A result of an older epoch speaks of a circuit that is gone."""
    current = evidence.epoch is None or evidence.epoch == circuit.epoch
    return current and circuit.state not in (State.CIRCUIT_OPEN, State.DISABLED)


def _failed(circuit: Circuit) -> Circuit:
    return replace(circuit, failures=circuit.failures + 1, successes=0)


def _opened(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> Circuit:
    openings = circuit.openings + 1
    return _forgotten(
        replace(
            circuit,
            state=State.CIRCUIT_OPEN,
            epoch=circuit.epoch + 1,
            openings=openings,
            cooldown_until=evidence.at + _cooldown(openings, parameters),
        )
    )


def _cooldown(openings: int, parameters: Parameters) -> timedelta:
    ladder = parameters.cooldowns_s
    return timedelta(seconds=ladder[min(openings, len(ladder)) - 1])


def _forgotten(circuit: Circuit) -> Circuit:
    return replace(circuit, recovery_successes=0, failures=0, successes=0, window=(), correlations=())


def _sampled(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> Circuit:
    """Only a supply has a failure rate; its window holds one entry a moment, oldest first."""
    if circuit.subject == Subject.CHANNEL:
        return circuit
    since = evidence.at - timedelta(seconds=parameters.rate_window_s)
    kept = [samples for samples in circuit.window if samples.at >= since]
    failures, successes = 0, 0
    if kept and kept[-1].at == evidence.at:
        last = kept.pop()
        failures, successes = last.failures, last.successes
    if evidence.kind == Kind.FAILURE:
        failures += 1
    else:
        successes += 1
    return replace(circuit, window=(*kept, Samples(evidence.at, failures, successes)))


def _rate_exceeded(circuit: Circuit, parameters: Parameters) -> bool:
    failures = sum(samples.failures for samples in circuit.window)
    total = failures + sum(samples.successes for samples in circuit.window)
    return total >= parameters.rate_samples and failures > parameters.rate_limit * total


def _correlated(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> Circuit:
    if evidence.code not in _SHARED_CODES or not evidence.supply:
        return circuit
    since = evidence.at - timedelta(seconds=parameters.correlation_window_s)
    piece = Correlation(evidence.at, evidence.code, evidence.supply)
    # The latest of each code and supply is all that can still matter.
    kept = (
        one
        for one in circuit.correlations
        if one.at >= since and (one.code, one.supply) != (piece.code, piece.supply)
    )
    return replace(circuit, correlations=(*kept, piece))


def _shared_by_supplies(circuit: Circuit, evidence: Evidence, parameters: Parameters) -> bool:
    if evidence.code not in _SHARED_CODES:
        return False
    supplies = {one.supply for one in circuit.correlations if one.code == evidence.code}
    return len(supplies) >= parameters.correlation_supplies


_STEPS = {
    Kind.SUCCESS: _success,
    Kind.FAILURE: _failure,
    Kind.NONE: _none,
    Kind.TICK: _tick,
    Kind.PROBE: _probe,
    Kind.CHECK_FAILED: _check_failed,
    Kind.DISABLE: _disable,
    Kind.ENABLE: _enable,
    Kind.ENABLE_HEALTHY: _enable,
}
