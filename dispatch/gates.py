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
from dispatch.routing.explain import Note

_UNSOLD = "no sale price for profile {profile}, which a binding delivers"
_OUT_OF_SERVICE = ("circuit_open", "disabled")


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate's verdict; `fix` is empty where it passed. Its words are English msgids."""

    number: int
    name: str
    found: tuple[Note, ...]
    required: str
    passed: bool
    fix: str = ""

    @property
    def measured(self) -> str:
        return "; ".join(map(str, self.found))

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
    unsold: tuple[str, ...] = ()  # profiles that bindings deliver and the model's price lacks


def judge(evidence: Evidence) -> list[Gate]:
    """All nine, in their order; every one is evaluated, whatever the others say."""
    return [gate(evidence) for gate in _GATES]


def _exact_binding(evidence: Evidence) -> Gate:
    serving = [binding.supply for binding in evidence.bindings if _can_serve(binding)]
    return Gate(
        1,
        "an exact binding that can serve",
        (_names("{count} can serve", "{count} can serve ({supplies})", serving),),
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
        _at(binding.supply, binding.capability_problem)
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
    problems += [Note(_UNSOLD, {"profile": profile}) for profile in evidence.unsold]
    return _by_problems(
        3,
        "cost rules",
        "every bound supply has a price in force in a mode the model sells, with examples inside the ceiling",
        problems,
        "Publish a price, add the currency's rate, raise max_cost_micros, or remove the binding.",
    )


def _price_problems(binding: BoundSupply, evidence: Evidence) -> Iterable[Note]:
    price = binding.price
    if price is None:
        yield _at(binding.supply, binding.price_problem)
        return
    sold = _modes_sold(evidence)
    if price.mode not in sold:
        told = {"supply": binding.supply, "mode": price.mode, "sold": ", ".join(sorted(sold))}
        yield Note("{supply}: charges {mode}, and the model sells {sold}", told)
    if evidence.policy is None:
        return
    rate = rate_to(evidence.policy.currency, price, evidence.rates)
    if rate is None:
        told = {"supply": binding.supply, "currency": price.currency, "to": evidence.policy.currency}
        yield Note("{supply}: no rate from {currency} to {to}", told)
        return
    for example, shape in _taken_examples(binding, evidence):
        yield from _quote_problems(f"{binding.supply}, {example.name}", price, shape, rate, evidence.policy)


def _quote_problems(where: str, price: Price, shape: Shape, rate: Ratio, policy: Policy) -> Iterable[Note]:
    if isinstance(shape, VideoShape) and shape.billing_mode != price.mode:
        return
    micros = quote_micros(price, shape, rate)
    if micros is None:
        yield Note("{where}: no price", {"where": where})
    elif policy.max_cost_micros is not None and micros > policy.max_cost_micros:
        told = {"where": where, "amount": written(micros), "most": written(policy.max_cost_micros)}
        yield Note(
            "{where}: costs {amount} {currency}, above the ceiling {most}",
            told | {"currency": policy.currency},
        )


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
        Note("{supply}: its rule is not verified and published", {"supply": binding.supply})
        for binding in degraded
        if binding.rule is None or not binding.rule.usable
    ]
    if degraded and not evidence.disclosure.strip():
        problems.append(Note("the disclosure text is empty"))
    return _by_problems(
        4,
        "degradation",
        "every degraded binding has a verified, published rule, and the public text discloses the loss",
        problems,
        "Verify and publish the rule, and say in the disclosure what a degraded delivery loses.",
    )


def _policy(evidence: Evidence) -> Gate:
    problems = [Note("{problem}", {"problem": evidence.policy_problem})] if evidence.policy_problem else []
    problems += [
        Note("{supply}: priority {priority}", {"supply": binding.supply, "priority": binding.priority})
        for binding in evidence.bindings
        if not 0 <= binding.priority <= PRIORITY_MAX
    ]
    return _by_problems(
        5,
        "policy and priorities",
        "valid policy parameters, and priorities from 0 to 1000000",
        problems,
        "Correct the named parameter in a new version of the policy, or the priority.",
    )


def _examples(evidence: Evidence) -> Gate:
    problems = [_at(example.name, example.problem) for example in evidence.examples if example.problem]
    for binding in evidence.bindings:
        if binding.tier == "exact":
            problems += [_at(binding.supply, problem) for problem in _exact_problems(binding, evidence)]
    if not evidence.examples:
        problems.append(Note("the model has no example request"))
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
        Note("{supply}: ended on {day}", {"supply": binding.supply, "day": str(binding.sunset_on)})
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
        (
            _names(
                "{count} of {of} exact supplies in service",
                "{count} of {of} exact supplies in service ({supplies})",
                up,
                of=len(exact),
            ),
        ),
        "at least one exact supply that is neither circuit_open nor disabled, nor its channel",
        bool(up),
        "" if up else "Wait until an exact supply recovers, or enable its health again.",
    )


def _replay(evidence: Evidence) -> Gate:
    return _by_problems(
        9,
        "replay",
        "replaying the last recorded selections raises no error",
        [Note("{problem}", {"problem": problem}) for problem in evidence.replay_problems],
        "Look at the named job: the present bindings or documents cannot decide its request.",
        Note("{count} replayed without an error", {"count": evidence.replayed}),
    )


_GATES = (_exact_binding, _capability, _price, _degradation, _policy, _examples, _sunset, _health, _replay)


def _by_problems(
    number: int,
    name: str,
    required: str,
    problems: Sequence[Note],
    fix: str,
    good: Note = Note("nothing is missing"),  # noqa: B008 - frozen
) -> Gate:
    return Gate(number, name, tuple(problems) or (good,), required, not problems, fix if problems else "")


def _at(place: str, problem: str) -> Note:
    """A problem that another part put in words of its own."""
    return Note("{place}: {problem}", {"place": place, "problem": problem})


def _names(none: str, some: str, supplies: Sequence[str], **told: int) -> Note:
    values = {"count": len(supplies), "supplies": ", ".join(supplies), **told}
    return Note(some if supplies else none, values)
