"""Saving closes a model, publishing opens it through nine gates, and nobody overwrites anybody."""

from dataclasses import replace
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from catalog.audit import Actor
from catalog.exceptions import CatalogueError, StaleRevision
from catalog.facts import BindingFacts, ModelFacts
from catalog.models import AuditEntry, Channel, DegradationRule, ModelRevision, PublicModel, Supply
from catalog.repository import rule_facts
from catalog.revision import current_revision
from catalog.services.save_policy import save_policy
from catalog.services.save_rule import save_rule
from dispatch.catalogue.repository import saved_model_facts
from dispatch.services.publish import GateReport, Published, publish, review
from dispatch.services.revert_model import revert_model
from dispatch.services.save_model import save_model
from dispatch.services.withdraw_model import withdraw_model
from health.models import SupplyHealth
from tests.factories import (
    NOW,
    VIDEO_CAPABILITY,
    DegradationRuleFactory,
    DispatchPolicyFactory,
    JobFactory,
    SelectionRoundFactory,
    SupplyFactory,
)

pytestmark = pytest.mark.django_db

ALICE = Actor("alice", "console")
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def facts() -> ModelFacts:
    """A model that passes every gate, not yet saved."""
    DispatchPolicyFactory(slug="stable", parameters={"order": "stable_first"})
    DegradationRuleFactory(slug="933-to-900")
    for slug in ("exact", "fallback", "degraded"):
        SupplyFactory(slug=slug)
    Channel.objects.update(credential="sealed")
    return ModelFacts(
        slug="seedance",
        modality="video",
        display_name="Seedance",
        disclosure="Videos and sounds may be left out.",
        parameters=VIDEO_CAPABILITY,
        policy="stable",
        profile="933",
        example_requests=({"prompt": "A lighthouse", "duration_s": 5, "resolution": "720p"},),
        bindings=(
            BindingFacts("exact", "exact", priority=500),
            BindingFacts("fallback", "fallback"),
            BindingFacts("degraded", "degraded", rule="933-to-900"),
        ),
    )


def saved(facts: ModelFacts, expected: int | None = None) -> PublicModel:
    return save_model(facts, expected_revision=expected, actor=ALICE, now=NOW)


def published(facts: ModelFacts) -> PublicModel:
    result = publish(saved(facts), actor=ALICE, now=NOW)
    assert isinstance(result, Published), [str(gate) for gate in result.failed]
    return result.model


def shut(result: Published | GateReport) -> list[int]:
    return [gate.number for gate in result.gates if not gate.passed]


def test_a_new_model_is_saved_closed_with_its_first_revision(facts: ModelFacts) -> None:
    model = saved(facts)
    assert (model.enabled, model.published, model.revision) == (False, False, 1)
    assert model.revisions.get().document["model"]["policy"] == "stable@1"
    assert saved_model_facts(model) == replace(facts, policy="stable@1")


@pytest.mark.parametrize(
    "change",
    [
        {"display_name": "Another"},
        {"policy": "other"},
        {"bindings": (BindingFacts("exact", "exact", priority=501),)},
        {"bindings": (BindingFacts("exact", "exact", priority=500, enabled=False),)},
    ],
)
def test_every_saved_change_closes_the_model_and_is_kept(
    facts: ModelFacts, change: dict[str, object]
) -> None:
    DispatchPolicyFactory(slug="other")
    published(facts)
    before = current_revision()
    model = saved(replace(facts, **change), expected=1)  # type: ignore[arg-type]
    model.refresh_from_db()
    assert (model.enabled, model.published, model.revision, model.published_revision) == (False, False, 2, 1)
    assert ModelRevision.objects.filter(public_model=model).count() == 2
    assert current_revision() == before + 1
    entry = AuditEntry.objects.get(action="save model", before__isnull=False)
    assert entry.before != entry.after
    assert (entry.actor, entry.source, entry.subject) == ("alice", "console", f"model:{model.public_id}")


def test_saving_what_is_saved_changes_nothing(facts: ModelFacts) -> None:
    published(facts)
    before = (current_revision(), AuditEntry.objects.count())
    shuffled = replace(facts, bindings=tuple(reversed(facts.bindings)))
    model = saved(shuffled, expected=1)
    assert (model.published, model.revision) == (True, 1)
    assert (current_revision(), AuditEntry.objects.count()) == before


def test_a_removed_binding_is_gone_and_the_others_keep_their_ids(facts: ModelFacts) -> None:
    model = saved(facts)
    kept = model.bindings.get(tier="exact").public_id
    saved(replace(facts, bindings=facts.bindings[:2]), expected=1)
    assert set(model.bindings.values_list("tier", flat=True)) == {"exact", "fallback"}
    assert model.bindings.get(tier="exact").public_id == kept


@pytest.mark.parametrize("expected", [None, 2])
def test_who_did_not_see_the_present_revision_overwrites_nothing(
    facts: ModelFacts, expected: int | None
) -> None:
    saved(facts)
    with pytest.raises(StaleRevision) as caught:
        saved(replace(facts, display_name="Mine"), expected=expected)
    assert caught.value.actual == 1
    assert PublicModel.objects.get().display_name == "Seedance"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"policy": "nowhere"}, "policy"),
        ({"policy": "stable@7"}, "policy"),
        ({"bindings": (BindingFacts("nowhere", "exact"),)}, "bindings[0].supply"),
        ({"bindings": (BindingFacts("exact", "degraded", rule="nowhere"),)}, "bindings[0].rule"),
        ({"bindings": (BindingFacts("exact", "degraded"),)}, "bindings[0].rule"),
        ({"bindings": (BindingFacts("exact", "exact", rule="933-to-900"),)}, "bindings[0].rule"),
        ({"bindings": (BindingFacts("picture", "exact"),)}, "bindings[0].supply"),
    ],
)
def test_what_cannot_be_is_refused_by_its_path(
    facts: ModelFacts, change: dict[str, object], path: str
) -> None:
    SupplyFactory(slug="picture", image=True)
    with pytest.raises(CatalogueError) as caught:
        saved(replace(facts, **change))  # type: ignore[arg-type]
    assert caught.value.path == path
    assert not PublicModel.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_who_save_at_once_one_is_told(facts: ModelFacts) -> None:
    saved(facts)
    together, told = Barrier(2), []

    def save(name: str) -> None:
        together.wait()
        try:
            saved(replace(facts, display_name=name), expected=1)
        except StaleRevision:
            told.append(name)
        finally:
            connection.close()

    threads = [Thread(target=save, args=(name,)) for name in ("One", "Other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model = PublicModel.objects.get()
    assert len(told) == 1
    assert model.revision == 2
    assert model.display_name not in told


def test_a_model_that_passes_serves_at_its_revision(facts: ModelFacts) -> None:
    model = published(facts)
    assert (model.enabled, model.published, model.published_revision) == (True, True, 1)
    entry = AuditEntry.objects.get(action="publish model")
    assert entry.after == {"enabled": True, "published": True, "published_revision": 1}


@pytest.mark.parametrize(
    ("gate", "spoil"),
    [
        (1, lambda: Channel.objects.filter(supplies__slug="exact").update(credential="")),
        (1, lambda: Supply.objects.filter(slug="exact").update(state="draining")),
        (2, lambda: Supply.objects.filter(slug="fallback").update(capability_version=None)),
        (4, lambda: DegradationRule.objects.update(published_at=None)),
        (7, lambda: Supply.objects.filter(slug="degraded").update(sunset_on=NOW - timedelta(days=1))),
        (
            8,
            lambda: SupplyHealth.objects.create(
                supply=Supply.objects.get(slug="exact"), state="circuit_open", cooldown_until=LATER
            ),
        ),
    ],
)
def test_a_shut_gate_keeps_the_model_closed(facts: ModelFacts, gate: int, spoil: object) -> None:
    model = saved(facts)
    spoil()  # type: ignore[operator]
    before = (current_revision(), AuditEntry.objects.count())
    result = publish(model, actor=ALICE, now=NOW)
    assert shut(result) == [gate]
    assert not PublicModel.objects.get().published
    assert (current_revision(), AuditEntry.objects.count()) == before


def test_gate_3_is_shut_without_a_price_and_by_the_ceiling(facts: ModelFacts) -> None:
    SupplyFactory(slug="unpriced", price=False)
    DispatchPolicyFactory(slug="poor", parameters={"max_cost_micros": 100_000})
    unpriced = replace(facts, bindings=(*facts.bindings, BindingFacts("unpriced", "fallback")))
    assert shut(publish(saved(unpriced), actor=ALICE, now=NOW)) == [3]
    poor = replace(facts, policy="poor")
    assert shut(publish(saved(poor, expected=1), actor=ALICE, now=NOW)) == [3]


def test_a_price_per_token_is_stored_but_shuts_gate_3(facts: ModelFacts) -> None:
    SupplyFactory(slug="tokens", price={"mode": "per_token", "currency": "USD"})
    model = saved(replace(facts, bindings=(*facts.bindings, BindingFacts("tokens", "fallback"))))
    result = publish(model, actor=ALICE, now=NOW)
    assert shut(result) == [3]
    assert "per_token can be stored, but not executed" in result.gates[2].measured


def test_gate_5_is_shut_by_a_policy_that_cannot_be(facts: ModelFacts) -> None:
    DispatchPolicyFactory(slug="odd", parameters={"order": "weighted"})
    assert shut(publish(saved(replace(facts, policy="odd")), actor=ALICE, now=NOW)) == [5]


@pytest.mark.parametrize(
    "example",
    [
        {"prompt": "A lighthouse", "duration_s": 99},
        {"prompt": "A lighthouse", "size": "1024x1024"},
        {"prompt": "A lighthouse", "duration_s": 5, "last_frame": "https://media.example.com/a.png"},
    ],
)
def test_gate_6_is_shut_by_an_example_that_no_customer_could_send(
    facts: ModelFacts, example: dict[str, object]
) -> None:
    model = saved(replace(facts, example_requests=(*facts.example_requests, example)))
    assert shut(publish(model, actor=ALICE, now=NOW)) == [6]


def test_gate_9_replays_recorded_requests_and_names_the_one_that_breaks(facts: ModelFacts) -> None:
    model = saved(facts)
    SelectionRoundFactory(job=JobFactory(public_model=model))
    result = publish(model, actor=ALICE, now=NOW)
    assert isinstance(result, Published)
    assert result.gates[8].measured == "1 replayed without an error"
    broken = JobFactory(public_model=model, request={"prompt": "of an older form"})
    SelectionRoundFactory(job=broken)
    withdraw_model(model, actor=ALICE, now=NOW)
    result = publish(model, actor=ALICE, now=NOW)
    assert shut(result) == [9]
    assert broken.public_id in result.gates[8].measured
    assert "older form" not in result.gates[8].measured


def test_a_review_says_what_publishing_would_and_changes_nothing(facts: ModelFacts) -> None:
    model = saved(facts)
    Channel.objects.update(credential="")
    assert [gate.number for gate in review(model, NOW) if not gate.passed] == [1]


def test_publishing_what_somebody_saved_meanwhile_is_refused(facts: ModelFacts) -> None:
    model = saved(facts)
    saved(replace(facts, display_name="Another"), expected=1)
    with pytest.raises(StaleRevision):
        publish(model, expected_revision=1, actor=ALICE, now=NOW)
    assert not PublicModel.objects.get().published


def test_a_withdrawn_model_keeps_its_revision(facts: ModelFacts) -> None:
    model = withdraw_model(published(facts), actor=ALICE, now=NOW)
    assert (model.enabled, model.published, model.revision, model.published_revision) == (False, False, 1, 1)
    before = AuditEntry.objects.count()
    withdraw_model(model, actor=ALICE, now=NOW)
    assert AuditEntry.objects.count() == before


def test_a_rule_that_loses_its_verification_withdraws_its_models(facts: ModelFacts) -> None:
    published(facts)
    rule = rule_facts(DegradationRule.objects.get())
    save_rule(replace(rule, verified=False, published=False), actor=ALICE, now=LATER)
    assert not PublicModel.objects.get().published


def test_an_earlier_revision_comes_back_whole_with_its_policy_version(facts: ModelFacts) -> None:
    model = published(facts)
    save_policy("stable", {"order": "cost_first"}, actor=ALICE, now=NOW)
    saved(replace(facts, display_name="Second", bindings=facts.bindings[:1]), expected=1)
    result = revert_model(model, 1, expected_revision=2, actor=ALICE, now=LATER)
    assert isinstance(result, Published)
    model.refresh_from_db()
    assert (model.revision, model.published_revision, model.display_name) == (3, 3, "Seedance")
    assert (model.policy.slug, model.policy.version) == ("stable", 1)
    assert saved_model_facts(model) == replace(facts, policy="stable@1")
    assert model.revisions.get(number=3).note == "revision 1 again"


def test_a_revision_that_no_longer_passes_changes_nothing(facts: ModelFacts) -> None:
    model = published(facts)
    second = saved(replace(facts, bindings=facts.bindings[:1]), expected=1)
    publish(second, actor=ALICE, now=NOW)
    Supply.objects.filter(slug="fallback").update(sunset_on=NOW - timedelta(days=1))
    before = (current_revision(), AuditEntry.objects.count())
    result = revert_model(model, 1, expected_revision=2, actor=ALICE, now=LATER)
    assert shut(result) == [7]
    model.refresh_from_db()
    assert (model.revision, model.published, model.bindings.count()) == (2, True, 1)
    assert (current_revision(), AuditEntry.objects.count()) == before
