"""What a draft would have changed, and why a supply lost, from rounds that the dispatcher recorded."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from catalog.audit import Actor
from catalog.exceptions import CatalogueError
from catalog.facts import BindingFacts, ModelFacts
from catalog.models import PublicModel, Supply
from catalog.services.save_policy import save_policy
from dispatch.catalogue.repository import saved_model_facts
from dispatch.models import Attempt, Job, SelectionRound
from dispatch.routing.effect import Effect, Move
from dispatch.services.dispatch_scan import scan
from dispatch.services.replay_effect import replay_effect
from dispatch.services.save_model import save_model
from dispatch.services.why_not import why_not
from tests.engine import VIDEO, Engine

ALICE = Actor("alice", "console")
EXACT, FALLBACK = "beijing-seedance-2-0", "singapore-seedance-2-0"
STRANGER = "singapore-seedance-1-0-pro"  # in the catalogue, and not bound to the model


def recorded(engine: Engine, jobs: int = 7, body: dict[str, Any] = VIDEO) -> list[Job]:
    """Jobs that were looked at once; the exact supply has five slots, and what waits shares a round."""
    made = [engine.job(body) for _ in range(jobs)]
    scan(lambda: engine.now)
    return made


def draft(slug: str = "seedance-2.0-933", **changes: Any) -> ModelFacts:
    return replace(saved_model_facts(PublicModel.objects.select_related("policy").get(slug=slug)), **changes)


def effect_of(engine: Engine, facts: ModelFacts) -> Effect:
    return replay_effect(facts, engine.now + timedelta(minutes=1))


def test_the_published_revision_reproduces_every_recorded_pick(engine: Engine) -> None:
    recorded(engine)
    effect = effect_of(engine, draft())
    assert (effect.recorded, effect.replayed, effect.changed, effect.moves) == (6, 6, 0, ())
    assert (effect.not_replayed, effect.assumed) == ({}, {})
    assert (effect.compared, effect.cost_difference_micros, effect.success_difference) == (5, 0, 0)
    assert effect.cost_before_micros == 5 * 700_000


def test_a_draft_tells_which_picks_would_have_gone_where_and_at_what_cost(engine: Engine) -> None:
    recorded(engine)
    effect = effect_of(engine, draft(bindings=(BindingFacts(FALLBACK, "exact"),)))
    assert effect.moves == (Move(EXACT, FALLBACK, 5), Move("waiting_capacity", FALLBACK, 1))
    assert (effect.changed, effect.gained, effect.lost) == (6, 1, {})
    assert effect.cost_difference_micros == 5 * (900_000 - 700_000)
    assert set(effect.examples) == set(SelectionRound.objects.values_list("public_id", flat=True))


def test_a_draft_without_anybody_who_can_says_what_would_have_had_no_supply(engine: Engine) -> None:
    recorded(engine, 2)
    effect = effect_of(engine, draft(bindings=(BindingFacts(EXACT, "exact", enabled=False),)))
    assert effect.lost == {"no_candidate": 2}
    assert effect.compared == 0


def test_a_supply_that_no_round_knew_is_compiled_now_and_counted_as_assumed(engine: Engine) -> None:
    recorded(engine, 3)
    bindings = (*draft().bindings, BindingFacts(STRANGER, "exact"))
    cheap = save_policy("cheap", {"order": "cost_first"}, actor=ALICE, now=engine.now)
    effect = effect_of(engine, draft(bindings=bindings, policy=cheap.slug))
    assert effect.moves == (Move(EXACT, STRANGER, 3),)
    assert effect.assumed == {STRANGER: 3}


def test_rounds_are_replayed_by_what_a_stored_revision_said_then(engine: Engine) -> None:
    recorded(engine, 2)
    model = save_model(
        draft(bindings=(BindingFacts(FALLBACK, "exact"),)), expected_revision=1, actor=ALICE, now=engine.now
    )
    later = engine.now + timedelta(minutes=1)
    assert replay_effect(model.revisions.get(number=1), later).changed == 0
    assert replay_effect(model.revisions.get(number=2), later).moves == (Move(EXACT, FALLBACK, 2),)


def test_only_the_newest_rounds_of_the_last_day_are_replayed(engine: Engine) -> None:
    recorded(engine, 4)
    effect = replay_effect(draft(), engine.now, most=3)
    assert (effect.recorded, effect.replayed) == (4, 3)
    assert replay_effect(draft(), engine.now + timedelta(hours=25)).recorded == 0


def test_what_cannot_be_replayed_is_counted_with_its_reason(engine: Engine) -> None:
    recorded(engine, 2)
    euro = save_policy("euro", {"currency": "EUR"}, actor=ALICE, now=engine.now)
    effect = effect_of(engine, draft(policy=euro.slug))
    assert effect.replayed == 0
    assert effect.not_replayed == {"recorded in USD, the draft's policy counts EUR": 2}
    with pytest.raises(CatalogueError, match="no policy 'gone'"):
        effect_of(engine, draft(policy="gone"))


def test_the_number_of_queries_does_not_grow_with_the_rounds(engine: Engine) -> None:
    recorded(engine, 2)
    effect_of(engine, draft())
    few = queries(engine)
    recorded(engine, 5)
    assert queries(engine) == few


def queries(engine: Engine) -> int:
    facts = draft()
    with CaptureQueriesContext(connection) as captured:
        effect_of(engine, facts)
    return len(captured)


def lost(engine: Engine) -> Attempt:
    """Priorities 500 at Beijing and 100 at Singapore decided for Beijing."""
    (job,) = recorded(engine, 1, {**VIDEO, "model": "seedance-1.0-pro"})
    return Attempt.objects.select_related("selection_round__job").get(job=job)


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("why_not", *arguments, stdout=out)
    return out.getvalue()


def test_a_losing_supply_is_told_what_would_have_made_it_win(engine: Engine) -> None:
    attempt = lost(engine)
    answer = why_not(attempt.selection_round, STRANGER, engine.now)
    found = {(change.kind, change.subject): change for change in answer.changes}
    assert found["priority", STRANGER].after == 501
    assert found["slots", "beijing-seedance-1-0-pro"].after == 0
    text = told(STRANGER, "--attempt", attempt.public_id)
    assert text.startswith("beijing-seedance-1-0-pro was chosen.\n")
    assert f"{STRANGER} would have won with priority 501 or higher; it had 100." in text
    assert told(STRANGER, "--round", attempt.selection_round.public_id) == text


def test_a_price_may_win_by_making_the_other_one_too_dear(engine: Engine) -> None:
    """A lower quote is a lower baseline, and Beijing's 0.518 may be at most one and a half of it."""
    answer = why_not(lost(engine).selection_round, STRANGER, engine.now)
    (price,) = (change for change in answer.changes if change.kind == "price")
    assert (price.before, price.after) == (550_000, 345_333)


def test_where_nothing_single_would_have_helped_that_is_said(engine: Engine) -> None:
    """A healthy exact layer keeps every fallback out, whatever its own values."""
    (job,) = recorded(engine, 1)
    text = told(FALLBACK, "--attempt", Attempt.objects.get(job=job).public_id)
    assert "No single change of its own priority, health, slots or price would have made it win." in text
    assert "layer_not_reached" in text


def test_a_supply_that_was_chosen_needs_nothing(engine: Engine) -> None:
    attempt = lost(engine)
    assert told(attempt.supply.slug, "--attempt", attempt.public_id) == f"{attempt.supply.slug} was chosen.\n"


def test_a_wrong_id_and_a_stranger_are_told_with_exit_2(engine: Engine) -> None:
    attempt = lost(engine)
    assert Supply.objects.filter(slug=EXACT).exists()
    for arguments in ((STRANGER, "--attempt", "att_nobody"), (EXACT, "--attempt", attempt.public_id)):
        with pytest.raises(CommandError) as caught:
            told(*arguments)
        assert caught.value.returncode == 2
