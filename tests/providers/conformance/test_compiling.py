"""Which adapters there are, and what each compiles of a request: the golden one, or nothing."""

import json

import pytest

from catalog.providers.http import Transport
from catalog.providers.registry import ADAPTERS, UnknownProvider, adapter_for, config_problems
from catalog.providers.types import Accepted, CompileError, CompilePlan, plan_from_json
from catalog.simulator.server import Simulator
from tests.providers.cases import CASES, Case
from tests.providers.conformance.suite import GOLDEN, KEY, every, plan_of
from tests.providers.conftest import CALM, access


def test_every_adapter_has_a_case() -> None:
    assert {case.adapter.key for case in CASES} == set(ADAPTERS)


def test_an_unknown_provider_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownProvider, match=r"'nobody'.*ark"):
        adapter_for("nobody")
    assert config_problems("nobody", {}) is None


def test_the_config_is_held_to_the_adapters_schema(case: Case) -> None:
    assert config_problems(case.adapter.key, case.config) == []
    assert config_problems(case.adapter.key, {}) == []
    for config in case.bad_configs:
        assert config_problems(case.adapter.key, config)


def test_the_capabilities_speak_of_every_modality(case: Case) -> None:
    capabilities = case.adapter.capabilities
    modalities = set(case.supplies)
    assert (
        set(capabilities.asynchronous) == set(capabilities.recovery) == set(capabilities.cancel) == modalities
    )


@every("legal")
def test_a_legal_request_becomes_the_golden_native_one(case: Case, entry: str) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan), plan
    golden = json.loads((GOLDEN / f"{entry}.json").read_text())
    assert json.loads(json.dumps(plan.as_json())) == golden
    assert plan_from_json(golden) == plan


@every("legal")
def test_the_same_request_gives_the_same_bytes_in_whatever_order_it_is_written(
    case: Case, entry: str
) -> None:
    request = case.legal[entry]
    reordered = dict(reversed(request.items()))
    first, second = (case.adapter.compile(each, case.supply_for(request)) for each in (request, reordered))
    assert isinstance(first, CompilePlan)
    assert isinstance(second, CompilePlan)
    assert json.dumps(first.as_json()) == json.dumps(second.as_json())


@every("legal")
def test_nothing_is_degraded_unless_a_rule_says_so(case: Case, entry: str) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    assert {step.kind for step in plan.transformations} <= {"exact", "lossless"}


@every("legal")
def test_the_simulator_takes_what_the_adapter_compiles(case: Case, entry: str, simulator: Simulator) -> None:
    request = case.legal[entry]
    plan = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(plan, CompilePlan)
    with Transport(access(simulator.base_url(case.adapter.key), case.adapter.key), CALM) as client:
        assert isinstance(case.adapter.submit(client, plan, KEY, lambda: None), Accepted)


@every("illegal")
def test_an_illegal_request_is_refused_before_anything_is_sent(case: Case, entry: str) -> None:
    request = case.illegal[entry]
    refused = case.adapter.compile(request, case.supply_for(request))
    assert isinstance(refused, CompileError)
    assert entry in "; ".join(refused.reasons)


def test_an_explicit_null_means_the_same_as_nothing(case: Case) -> None:
    for request in case.legal.values():
        supply = case.supply_for(request)
        nulls = {"seed": None, "negative_prompt": None, "fps": None, "reference_videos": None}
        assert case.adapter.compile({**nulls, **request}, supply) == case.adapter.compile(request, supply)


def test_a_plan_shows_no_prompt_when_it_is_printed(case: Case) -> None:
    assert "lighthouse" not in repr(plan_of(case))
