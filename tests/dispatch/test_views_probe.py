"""An open circuit is probed before its time: with the role, a reason, once, and by one attempt alone."""

from typing import Any

import pytest
from django.test import Client

from catalog.models import AuditEntry
from dispatch.services import check_accounts
from dispatch.views import probe as door
from health.models import HealthEvent, SupplyHealth
from health.services.replay_recorded import replay_recorded
from tests.console import SignIn
from tests.dispatch.test_half_open import circuit, fail, jobs_of, long_runs, only_supply
from tests.engine import Engine

PAGE = "/console/channels/ark-beijing/probe/"
NOW = f"{PAGE}now/"
WHICH = "supply:beijing-seedance-1-0-pro"


@pytest.fixture
def li(sign_in: SignIn, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr("dispatch.views.probe.timezone.now", lambda: engine.now)
    return sign_in("operator")


def posted(client: Client, **changes: str) -> Any:
    token = client.get(PAGE).context["token"]
    form = {"confirm": token, "which": WHICH, "reason": "the provider says it is well", **changes}
    return client.post(NOW, form)


def test_a_forced_probe_lets_one_attempt_through_and_no_second_beside_it(engine: Engine, li: Client) -> None:
    supply = only_supply(slots=10)
    long_runs(engine)
    fail(engine, supply, times=5)
    jobs_of(engine, 20)
    engine.step(2)
    assert (circuit(supply), len(engine.posts())) == (("circuit_open", 0, 1), 0)
    assert 'id="to-probe"' in li.get("/console/channels/ark-beijing/").content.decode()
    page = li.get(PAGE)
    assert [each.key for each in page.context["circuits"]] == [WHICH]
    assert "One attempt of a customer" in page.content.decode()
    assert posted(li)["Location"] == "/console/channels/ark-beijing/"
    assert circuit(supply) == ("probing", 0, 1)
    for _ in range(5):
        engine.step(1)
    assert len(engine.posts()) == 1, "one probe for twenty jobs"
    assert posted(li).status_code == 409, "it is being probed: a second one changes nothing"
    engine.step(1)
    assert len(engine.posts()) == 1
    event = HealthEvent.objects.filter(subject="supply", cause="probed_by_operator").get()
    assert (event.actor, event.reason) == ("li.m", "the provider says it is well")
    entry = AuditEntry.objects.get(action="probe supply health")
    assert entry.after == {"state": "probing", "reason": "the provider says it is well"}
    fail(engine, supply, times=1)
    row = SupplyHealth.objects.get(pk=supply.pk)
    assert (row.state, row.openings) == ("circuit_open", 2), "the place on the ladder was kept"
    assert {step.problem for step in replay_recorded(door.Subject.SUPPLY, supply.pk)} == {""}
    assert (
        "No circuit of this channel is open" in li.get(PAGE.replace("beijing", "singapore")).content.decode()
    )


def test_it_needs_a_choice_a_reason_its_page_and_a_key_that_works(
    engine: Engine, li: Client, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    supply = only_supply()
    fail(engine, supply, times=5)
    assert posted(li, reason=" ", which="supply:another").context["faults"] == {
        "which": "choose",
        "reason": "no_reason",
    }
    assert posted(li, which="channel:ark-beijing").context["faults"] == {"which": "not_open"}
    assert posted(li, confirm="").status_code == 403
    viewer = sign_in("publisher", username="wang.l")
    assert viewer.get(PAGE).status_code == viewer.post(NOW, {"which": WHICH}).status_code == 403
    monkeypatch.setattr(door, "account_passes", lambda _channel: False)
    refused = posted(li)
    assert (refused.status_code, refused.context["faults"]) == (409, {"which": "account_refused"})
    assert "The account check failed" in refused.content.decode()
    assert circuit(supply)[0] == "circuit_open"
    assert check_accounts.account_passes(supply.channel_id), "the real check has nothing against it"
