"""The desk of uncertain attempts; tests name their item of the console's checklist."""

import re
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from billing.models import ProviderUsageEntry
from catalog.models import AuditEntry
from dispatch.models import Attempt, CapacityLease, GivingUp
from dispatch.queries.uncertain import find_attempt, story_of
from dispatch.services.recover import fail_as_not_created
from dispatch.services.take_attempt import take_attempt
from tests.console import SignIn
from tests.engine import Engine
from tests.factories import ProviderEventFactory, ProviderJobFactory
from tests.operations_world import WANG, OperationsWorld, make_operations_world


@pytest.fixture
def world(db: None) -> OperationsWorld:
    return make_operations_world()


@pytest.fixture
def li(sign_in: SignIn, world: OperationsWorld) -> Client:
    return sign_in("operator")


def desk(attempt: Attempt, at: str = "") -> str:
    return f"/console/uncertain/{attempt.public_id}/{at}"


def review(client: Client, attempt: Attempt, decision: str, evidence: str) -> Any:
    return client.get(desk(attempt, "decide/"), {"decision": decision, "evidence": evidence})


def decide(client: Client, attempt: Attempt, decision: str, evidence: str) -> Any:
    token = review(client, attempt, decision, evidence).context["token"]
    return confirm(client, attempt, decision, evidence, token)


def confirm(client: Client, attempt: Attempt, decision: str, evidence: str, token: str) -> Any:
    values = {"confirm": token, "decision": decision, "evidence": evidence}
    return client.post(desk(attempt, "decide/now/"), values)


def test_u1_nothing_on_the_desk_is_called_retry_or_resubmit(li: Client, world: OperationsWorld) -> None:
    for address in world.pages():
        controls = re.findall(r"<(?:button|a|input|select)\b[^>]*>[^<]*", li.get(address).content.decode())
        named = [each for each in controls if re.search(r"retry|resubmit|submit again|resend", each, re.I)]
        assert [each for each in named if 'id="retry"' not in each] == [], "but the header's, of its data"


def test_u2_each_decision_needs_its_evidence(li: Client, world: OperationsWorld) -> None:
    for decision in ("exists", "absent", "give_up"):
        response = review(li, world.uncertain, decision, "  ")
        assert response.status_code == 422
        assert f'href="#evidence-{decision}"' in response.content.decode()
        token = review(li, world.uncertain, decision, "cgt-unused").context["token"]
        assert confirm(li, world.uncertain, decision, "", token).status_code == 422
    other = ProviderJobFactory(attempt__supply=world.kestrel)
    response = review(li, world.uncertain, "exists", other.provider_job_id)
    assert response.status_code == 422
    assert other.attempt.public_id in response.context["fault"]
    world.uncertain.refresh_from_db()
    assert world.uncertain.state == "submission_uncertain"


def test_e12_a_decision_that_was_not_confirmed_is_refused(li: Client, world: OperationsWorld) -> None:
    token = review(li, world.uncertain, "absent", "looked").context["token"]
    assert confirm(li, world.uncertain, "give_up", "looked", token).status_code == 403, "another decision's"
    assert confirm(li, world.uncertain, "absent", "looked", "").status_code == 403
    assert not AuditEntry.objects.filter(action="decide submission").exists()


def test_u5_a_second_operator_sees_who_is_on_it_and_decides_only_after_taking_over(
    li: Client, world: OperationsWorld
) -> None:
    page = li.get(desk(world.taken))
    text = page.content.decode()
    assert re.search(r"wang\.l is on it until <time [^>]+>\d\d:\d\d:\d\d \(UTC\)", text)
    assert "Go on to confirm" not in text
    assert review(li, world.taken, "absent", "looked").status_code == 409
    assert li.post(desk(world.taken, "take/")).status_code == 409
    assert li.post(desk(world.taken, "take/"), {"over": "yes"}).status_code == 302
    assert "li.m is on it until" in li.get(desk(world.taken)).content.decode()
    assert decide(li, world.taken, "absent", "looked").status_code == 302
    take_attempt(world.uncertain, WANG, timezone.now())
    assert AuditEntry.objects.filter(action="take attempt", actor="li.m").exists()


def test_u5_somebody_who_takes_it_while_another_confirms_wins(li: Client, world: OperationsWorld) -> None:
    token = review(li, world.uncertain, "absent", "looked").context["token"]
    take_attempt(world.uncertain, WANG, timezone.now())
    response = confirm(li, world.uncertain, "absent", "looked", token)
    assert response.status_code == 409
    assert "wang.l is on it until" in response.content.decode()


def test_u4_an_answer_that_comes_while_the_form_is_open_stops_it_and_is_shown(
    li: Client, world: OperationsWorld
) -> None:
    token = review(li, world.uncertain, "give_up", "no answer").context["token"]
    fail_as_not_created(world.uncertain, "absent from two complete listings", timezone.now())
    response = confirm(li, world.uncertain, "give_up", "no answer", token)
    assert response.status_code == 409
    assert "The answer came while this form was open" in response.content.decode()
    assert "in state “Failed” now" in response.content.decode()


def test_above_the_limit_a_second_person_has_to_say_the_same(
    li: Client, sign_in: SignIn, world: OperationsWorld
) -> None:
    page = review(li, world.uncertain, "give_up", "no answer from support")
    assert page.context["needs_second"]
    assert decide(li, world.uncertain, "give_up", "no answer from support").status_code == 302
    assert GivingUp.objects.get(attempt=world.uncertain).operator == "li.m"
    assert "needs a second person" in li.get("/console/uncertain/").content.decode()
    chen = sign_in("operator", username="chen.y")
    assert not review(chen, world.uncertain, "give_up", "nor from me").context["needs_second"]
    assert decide(chen, world.uncertain, "give_up", "nor from me").status_code == 302
    world.uncertain.refresh_from_db()
    assert world.uncertain.state == "abandoned"


def test_asking_the_provider_reads_only_and_says_what_it_said(li: Client, world: OperationsWorld) -> None:
    before = Attempt.objects.values().get(pk=world.uncertain.pk)
    response = li.post(desk(world.uncertain, "query/"), {"task": ""})
    assert "It does not tell whether the provider has it." in response.content.decode()
    assert Attempt.objects.values().get(pk=world.uncertain.pk) == before
    entry = AuditEntry.objects.get(action="query provider")
    assert entry.after == {"task": "", "answer": "cannottell"}
    told = li.get(f"/console/audit/{entry.pk}/").content.decode()
    assert "It does not tell whether the provider has it." in told
    assert "cannottell" not in told.partition("The record itself")[0]


def test_where_a_submission_broke_is_said_in_words(li: Client, world: OperationsWorld) -> None:
    page = li.get(desk(world.uncertain)).content.decode()
    assert "<dt>It broke while</dt><dd>the provider&#x27;s answer was being read</dd>" in page


def test_a_task_that_was_told_and_is_another_attempts_is_named_with_a_link_to_that_attempt(
    li: Client, world: OperationsWorld
) -> None:
    other, own = ProviderJobFactory(attempt__supply=world.kestrel), "cgt-of-nobody"
    for task in (other.provider_job_id, own):
        ProviderEventFactory(attempt=world.uncertain, outcome="accepted", raw={"provider_job_id": task})
    told = li.get(desk(world.uncertain)).content.decode().partition('id="known-heading"')[0]
    assert told.count("is already the task of another attempt") == 1
    assert f'href="/console/jobs/{other.attempt.job.public_id}/#{other.attempt.public_id}"' in told
    assert f'<code class="id long">{other.provider_job_id}</code>' in told


def test_the_list_says_what_is_at_risk_and_a_beat_keeps_its_rows(li: Client, world: OperationsWorld) -> None:
    page = li.get("/console/uncertain/").content.decode()
    rows = re.findall(r'data-row="(att_\w+)"', page)
    assert rows == [world.uncertain.public_id, world.taken.public_id, world.lost.public_id]
    assert "$8.70" in page
    fail_as_not_created(world.uncertain, "absent", timezone.now())
    headers = {"HX-Request": "true", "Console-Rows": ",".join(rows[:2])}
    beat = li.get("/console/uncertain/", headers=headers).content.decode()
    assert re.findall(r'data-row="(att_\w+)"', beat) == rows[:2]
    assert "no longer uncertain" in beat
    assert "1 new attempt. Show" in beat


def test_without_any_the_desk_says_so_as_a_result(sign_in: SignIn, db: None) -> None:
    assert "No attempt is uncertain" in sign_in("viewer").get("/console/uncertain/").content.decode()


def uncertain(engine: Engine) -> Attempt:
    rule = {"when": {"call": "submit"}, "times": 1, "do": {"answer": "drop_after_acceptance"}}
    engine.simulator.script({"rules": [rule]})
    job = engine.job()
    engine.drain()
    return Attempt.objects.get(job=job)


@pytest.mark.parametrize("decision", ["exists", "absent", "give_up"])
def test_u3_slot_job_and_money_are_afterwards_as_was_said_before(
    engine: Engine, sign_in: SignIn, settings: Settings, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: engine.now)
    attempt = uncertain(engine)
    client = sign_in("operator")
    evidence = engine.simulator.world.log()["posts"][-1]["task_id"] if decision == "exists" else "looked"
    said = review(client, attempt, decision, evidence).context["effect"]
    assert decide(client, attempt, decision, evidence).status_code == 302
    attempt.refresh_from_db()
    assert attempt.job.state == said.job
    lease = CapacityLease.objects.get(attempt=attempt)
    assert _slot(lease) == (said.slot, said.slot_until)
    kinds = ProviderUsageEntry.objects.filter(attempt=attempt.public_id).values_list("kind", "platform_loss")
    money = {("expected", False): "expected", ("settled", True): "loss"}
    assert {money[each] for each in kinds} == ({said.money} if said.money != "none" else set())
    found = find_attempt(attempt.public_id)
    assert found is not None
    assert story_of(found, engine.now).decision is not None


def _slot(lease: CapacityLease) -> tuple[str, datetime | None]:
    if lease.released_at:
        return "freed", None
    return ("quarantine" if lease.quarantine_until else "known"), lease.quarantine_until
