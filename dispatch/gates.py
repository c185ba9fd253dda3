"""The nine production gates: what must be true of a public model before customers are served; pure.

Each gate says what was measured, what is required, and how to get there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from billing.money import written
from billing.pricing import Price, Ratio, quote_micros, rate_to
from catalog.capability import Capability, lacking
from catalog.degradation import Rule, reduced
from catalog.policy import PRIORITY_MAX, Policy
from catalog.shape import Shape, VideoShape

_OUT_OF_SERVICE = ("circuit_open", "disabled")


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate's verdict; `fix` is empty where it passed."""

    number: int
    name: str
    measured: str
    required: str
    passed: bool
    fix: str = ""

    def __str__(self) -> str:
        return f"gate {self.number} ({self.name}): {self.measured}; required: {self.required}. {self.fix}"


@dataclass(frozen=True, slots=True)
class Example:
    """One of the model's example requests; `problem` says why it is no valid request of the model."""

    name: str
    shape: Shape | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class BoundSupply:
    """One binding with all that the gates ask of its supply. `capability` and `price` are None where none
    that can be read is in force, and the problem says why; `compile_problems` are those of the examples."""

    supply: str
    tier: str
    enabled: bool
    priority: int
    states: tuple[str, str]  # admin states of supply and channel
    health: tuple[str, str]  # of supply and channel
    has_credential: bool
    capability: Capability | None
    capability_problem: str
    price: Price | None
    price_problem: str
    sunset_on: date | None
    rule: Rule | None = None
    compile_problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A model as it would be published, with everything the gates look at."""

    modality: str
    disclosure: str
    policy: Policy | None
    policy_problem: str
    bindings: tuple[BoundSupply, ...]
    examples: tuple[Example, ...]
    rates: dict[str, Ratio]  # policy's currency per unit of the code
    replayed: int  # recorded selections
    replay_problems: tuple[str, ...]
    today: date


def judge(evidence: Evidence) -> list[Gate]:
    """All nine, in their order; every one is evaluated, whatever the others say."""
    return [gate(evidence) for gate in _GATES]


def _exact_binding(evidence: Evidence) -> Gate:
    serving = [binding.supply for binding in evidence.bindings if _can_serve(binding)]
    return Gate(
        1,
        "an exact binding that can serve",
        f"{len(serving)} can serve{_names(serving)}",
        "at least one enabled exact binding whose supply and channel are enabled, with a credential",
        bool(serving),
        ""
        if serving
        else "Enable an exact binding, its supply and its channel, and store the channel's credential.",
    )


def _can_serve(binding: BoundSupply) -> bool:
    is_open = binding.enabled and binding.states == ("enabled", "enabled")
    return binding.tier == "exact" and is_open and binding.has_credential


def _capability(evidence: Evidence) -> Gate:
    problems = [
        f"{binding.supply}: {binding.capability_problem}"
        for binding in evidence.bindings
        if binding.capability_problem
    ]
    return _by_problems(
        2,
        "capability versions",
        "every bound supply has a published, valid capability version in force",
        problems,
        "Publish a capability document for the supply, or remove its binding.",
    )


def _price(evidence: Evidence) -> Gate:
    problems = [problem for binding in evidence.bindings for problem in _price_problems(binding, evidence)]
    return _by_problems(
        3,
        "cost rules",
        "every bound supply has a price in force in a mode the model sells, with examples inside the ceiling",
        problems,
        "Publish a price, add the currency's rate, raise max_cost_micros, or remove the binding.",
    )


def _price_problems(binding: BoundSupply, evidence: Evidence) -> Iterable[str]:
    price = binding.price
    if price is None:
        yield f"{binding.supply}: {binding.price_problem}"
        return
    sold = _modes_sold(evidence)
    if price.mode not in sold:
        yield f"{binding.supply}: charges {price.mode}, and the model sells {' and '.join(sorted(sold))}"
    if evidence.policy is None:
        return
    rate = rate_to(evidence.policy.currency, price, evidence.rates)
    if rate is None:
        yield f"{binding.supply}: no rate from {price.currency} to {evidence.policy.currency}"
        return
    for example, shape in _taken_examples(binding, evidence):
        yield from _quote_problems(f"{binding.supply}, {example.name}", price, shape, rate, evidence.policy)


def _quote_problems(where: str, price: Price, shape: Shape, rate: Ratio, policy: Policy) -> Iterable[str]:
    if isinstance(shape, VideoShape) and shape.billing_mode != price.mode:
        return
    micros = quote_micros(price, shape, rate)
    if micros is None:
        yield f"{where}: no price"
    elif policy.max_cost_micros is not None and micros > policy.max_cost_micros:
        most = written(policy.max_cost_micros)
        yield f"{where}: costs {written(micros)} {policy.currency}, above the ceiling {most}"


def _modes_sold(evidence: Evidence) -> set[str]:
    if evidence.modality == "image":
        return {"per_request"}
    shapes = [example.shape for example in evidence.examples if isinstance(example.shape, VideoShape)]
    return {shape.billing_mode for shape in shapes} or {"per_second"}


def _taken_examples(binding: BoundSupply, evidence: Evidence) -> Iterable[tuple[Example, Shape]]:
    """The examples that the supply is capable of, each as it would execute it."""
    for example in evidence.examples:
        if example.shape is None or binding.capability is None:
            continue
        shape = reduced(example.shape, binding.rule) if binding.rule else example.shape
        if not lacking(binding.capability, shape):
            yield example, shape


def _degradation(evidence: Evidence) -> Gate:
    degraded = [binding for binding in evidence.bindings if binding.tier == "degraded"]
    problems = [
        f"{binding.supply}: its rule is not verified and published"
        for binding in degraded
        if binding.rule is None or not binding.rule.usable
    ]
    if degraded and not evidence.disclosure.strip():
        problems.append("the disclosure text is empty")
    return _by_problems(
        4,
        "degradation",
        "every degraded binding has a verified, published rule, and the public text discloses the loss",
        problems,
        "Verify and publish the rule, and say in the disclosure what a degraded delivery loses.",
    )


def _policy(evidence: Evidence) -> Gate:
    problems = [evidence.policy_problem] if evidence.policy_problem else []
    problems += [
        f"{binding.supply}: priority {binding.priority}"
        for binding in evidence.bindings
        if not 0 <= binding.priority <= PRIORITY_MAX
    ]
    return _by_problems(
        5,
        "policy and priorities",
        f"valid policy parameters, and priorities from 0 to {PRIORITY_MAX}",
        problems,
        "Correct the named parameter in a new version of the policy, or the priority.",
    )


def _examples(evidence: Evidence) -> Gate:
    problems = [f"{example.name}: {example.problem}" for example in evidence.examples if example.problem]
    for binding in evidence.bindings:
        if binding.tier == "exact":
            problems += [f"{binding.supply}, {problem}" for problem in _exact_problems(binding, evidence)]
    if not evidence.examples:
        problems.append("the model has no example request")
    return _by_problems(
        6,
        "example requests",
        "at least one example request, and each compiles on every exact supply",
        problems,
        "Correct the example, or bind the supply in a tier that it can serve.",
    )


def _exact_problems(binding: BoundSupply, evidence: Evidence) -> Iterable[str]:
    yield from binding.compile_problems
    for example in evidence.examples:
        if example.shape is not None and binding.capability is not None:
            for lack in lacking(binding.capability, example.shape):
                yield f"{example.name}: cannot do {lack}"


def _sunset(evidence: Evidence) -> Gate:
    problems = [
        f"{binding.supply}: ended on {binding.sunset_on}"
        for binding in evidence.bindings
        if binding.sunset_on is not None and binding.sunset_on < evidence.today
    ]
    return _by_problems(
        7,
        "sunset dates",
        "no bound supply is past its sunset date",
        problems,
        "Remove the binding of that supply.",
    )


def _health(evidence: Evidence) -> Gate:
    exact = [binding for binding in evidence.bindings if binding.tier == "exact"]
    up = [each.supply for each in exact if not any(state in _OUT_OF_SERVICE for state in each.health)]
    return Gate(
        8,
        "health",
        f"{len(up)} of {len(exact)} exact supplies in service{_names(up)}",
        "at least one exact supply that is neither circuit_open nor disabled, nor its channel",
        bool(up),
        "" if up else "Wait until an exact supply recovers, or enable its health again.",
    )


def _replay(evidence: Evidence) -> Gate:
    return _by_problems(
        9,
        "replay",
        "replaying the last recorded selections raises no error",
        list(evidence.replay_problems),
        "Look at the named job: the present bindings or documents cannot decide its request.",
        f"{evidence.replayed} replayed without an error",
    )


_GATES = (_exact_binding, _capability, _price, _degradation, _policy, _examples, _sunset, _health, _replay)


def _by_problems(
    number: int, name: str, required: str, problems: Sequence[str], fix: str, good: str = "nothing is missing"
) -> Gate:
    measured = "; ".join(problems) if problems else good
    return Gate(number, name, measured, required, not problems, fix if problems else "")


def _names(supplies: Sequence[str]) -> str:
    return f" ({', '.join(supplies)})" if supplies else ""
