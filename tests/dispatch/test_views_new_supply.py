"""A new supply in four steps, tried by one call at the provider, and bound to a public model."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from billing.models import ProviderUsageEntry
from billing.repository import price_in_force
from catalog.models import AuditEntry, Supply
from dispatch import supply_form
from dispatch.models import FormReceipt, SupplyDraft, TrialCall
from dispatch.services import try_supply
from tests.console import SignIn
from tests.engine import Engine

NEW, KEEP = "/console/supplies/new/", "/console/supplies/new/keep/"
WHAT = {
    "channel": "ark-beijing",
    "slug": "beijing-next",
    "modality": "video",
    "provider_model": "doubao-seedance-3-0",
    "model_family": "seedance-3",
    "lifecycle": "preview",
    "sunset": "2027-06-30",
}
CAN = {
    "label": "2026-11",
    "modes": ["text_to_video", "image_to_video"],
    "durations_s": "4-12",
    "resolutions": "720p, 1080p",
    "aspect_ratios": "16:9, 9:16",
    "max_images": "4",
    "max_videos": "0",
    "max_audios": "0",
    "audio": "1",
    "real_person_policy": "restricted",
    "more": '{"fps": [24]}',
}
SLOTS = {"concurrency": "3", "unknown_limit": ""}
COST = {"mode": "per_second", "unit": "0.80", "currency": "cny", "min_s": "4", "free_on_failure": "1"}
STEPS = {"what": WHAT, "can": CAN, "slots": SLOTS, "cost": COST}


@pytest.fixture
def admin(sign_in: SignIn, engine: Engine) -> Client:
    return sign_in("admin")


def keep(client: Client, step: str, draft: str = "", **changes: Any) -> Any:
    page = client.get(f"{NEW}{draft}/{step}/" if draft else NEW)
    form = {"confirm": page.context["token"], "draft": draft, **STEPS[step], **changes}
    return client.post(f"{KEEP}{step}/", form)


def begun(client: Client, until: str) -> str:
    """The draft, with each step before `until` kept."""
    assert keep(client, "what").status_code == 302
    draft = SupplyDraft.objects.latest("pk").public_id
    for step in supply_form.STEPS[1 : supply_form.STEPS.index(until)]:
        assert keep(client, step, draft).status_code == 302
    return draft


def test_four_steps_make_a_supply_that_no_model_uses_yet(engine: Engine, admin: Client) -> None:
    draft = begun(admin, "cost")
    assert not Supply.objects.filter(slug="beijing-next").exists()
    page = admin.get(f"{NEW}{draft}/can/").content.decode()
    assert 'value="image_to_video" checked' in page, "what was typed is still there"
    response = keep(admin, "cost", draft)
    assert response["Location"] == "/console/supplies/beijing-next/try/"
    supply = Supply.objects.select_related("capability_version").get(slug="beijing-next")
    assert (supply.concurrency, supply.lifecycle, str(supply.sunset_on)) == (3, "preview", "2027-06-30")
    assert supply.real_person_policy == "restricted"
    assert supply.capability_version is not None
    assert supply.capability_version.document == {
        "modes": ["text_to_video", "image_to_video"],
        "durations_s": {"min": 4, "max": 12},
        "resolutions": ["720p", "1080p"],
        "aspect_ratios": ["16:9", "9:16"],
        "max_images": 4,
        "max_videos": 0,
        "max_audios": 0,
        "audio": True,
        "fps": [24],
    }
    price = price_in_force(supply, timezone.now())
    assert price is not None
    assert (price.document["per_second"], price.currency) == ("0.80", "CNY")
    assert not SupplyDraft.objects.exists()
    actions = set(AuditEntry.objects.filter(actor="li.m").values_list("action", flat=True))
    assert {"save supply", "publish capability", "publish price"} <= actions
    assert FormReceipt.objects.filter(went_to="/console/supplies/beijing-next/try/").count() == 1


FAULTS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("what", {"channel": "nowhere", "slug": "new"}, {"channel": "choose", "slug": "bad_slug"}),
    ("what", {"slug": "beijing-seedance-2-0"}, {"slug": "slug_taken"}),
    ("what", {"provider_model": " ", "sunset": "soon"}, {"provider_model": "missing", "sunset": "bad_date"}),
    ("can", {"real_person_policy": "some"}, {"real_person_policy": "choose"}),
    ("can", {"modes": [], "durations_s": "long"}, {"modes": "no_modes", "durations_s": "bad_durations"}),
    ("can", {"more": "{", "resolutions": ","}, {"more": "bad_json", "resolutions": "empty_list"}),
    ("can", {"more": '{"wings": 2}'}, {"more": "bad_document"}),
    (
        "can",
        {"more": '{"constraints": [{"when": {"mode": "text_to_video"}, "require": {"duration_s": [30]}}]}'},
        {"more": "contradiction"},
    ),
    (
        "slots",
        {"concurrency": "0", "unknown_limit": "-1"},
        {"concurrency": "no_limit", "unknown_limit": "bad_number"},
    ),
    ("cost", {"unit": "cheap"}, {"unit": "bad_price"}),
]


def test_a_step_that_can_not_be_read_says_why_by_code_and_keeps_what_was_typed(
    engine: Engine, admin: Client
) -> None:
    draft = begun(admin, "cost")
    for step, changes, faults in FAULTS:
        response = keep(admin, step, draft, **changes)
        assert (response.status_code, response.context["faults"]) == (422, faults), changes
        text = response.content.decode()
        assert "<title>Error: " in text.replace("[TEST] ", "")
        for name, value in changes.items():
            if isinstance(value, str) and value.strip():
                assert SupplyDraft.objects.get().typed[step][name] == value
            assert f'href="#{name}"' in text or name not in faults
        if step != "cost":
            keep(admin, step, draft)
    assert not Supply.objects.filter(slug="beijing-next").exists()


def test_another_row_keeps_what_is_typed_and_adds_no_supply(engine: Engine, admin: Client) -> None:
    draft = begun(admin, "cost")
    typed = {"unit": "not yet", "multiplier-0-when": "audio=true", "multiplier-1-factor": "2"}
    response = keep(admin, "cost", draft, do="multiplier", **typed)
    page = admin.get(response["Location"])
    texts = page.context["texts"]
    assert (texts.plain["unit"], len(texts.brackets)) == ("not yet", 2)
    assert texts.multipliers == (("audio=true", ""), ("", "2"), ("", ""))
    assert not Supply.objects.filter(slug="beijing-next").exists()
    text = page.content.decode()
    assert "nothing live changes" not in text
    assert "No public model uses it until it is bound to one." in text


def test_the_first_step_sent_twice_begins_one_draft_and_it_is_only_its_owners(
    engine: Engine, admin: Client, sign_in: SignIn
) -> None:
    token = admin.get(NEW).context["token"]
    for _ in range(2):
        admin.post(f"{KEEP}what/", {"confirm": token, "draft": "", **WHAT})
    draft = SupplyDraft.objects.get()
    assert draft.public_id in admin.get(NEW).content.decode()
    other = sign_in("operator", username="wang.l")
    assert other.get(f"{NEW}{draft.public_id}/can/").status_code == 404
    discard = f"{NEW}{draft.public_id}/discard/"
    assert other.get(discard).status_code == 404
    asks = admin.get(discard)
    assert f"{NEW}{draft.public_id}/what/" in asks.content.decode(), "what is lost can be looked at"
    form = {"confirm": asks.context["token"]}
    assert other.post(f"{discard}now/", form).status_code == 403
    assert admin.post(f"{discard}now/").status_code == 403, "nobody was asked"
    assert SupplyDraft.objects.exists()
    for _ in range(2):
        assert admin.post(f"{discard}now/", form)["Location"] == "/console/supplies/"
    assert not SupplyDraft.objects.exists()
    assert admin.post(f"{KEEP}what/", WHAT).status_code == 403, "a form from no page of ours"


def test_an_image_has_no_field_about_real_persons_and_sizes_instead_of_lengths(
    engine: Engine, admin: Client
) -> None:
    assert keep(admin, "what", slug="beijing-picture", modality="image").status_code == 302
    draft = SupplyDraft.objects.get().public_id
    page = admin.get(f"{NEW}{draft}/can/").content.decode()
    assert "real_person" not in page
    assert "real_person" not in admin.get(NEW).content.decode()
    can = {"modes": ["text_to_image"], "sizes": "1K, 2K", "max_n": "1", "more": ""}
    assert keep(admin, "can", draft, **can).status_code == 302
    assert keep(admin, "slots", draft).status_code == 302
    cost = {"mode": "per_request", "unit": "0.20", "min_s": ""}
    assert keep(admin, "cost", draft, **cost).status_code == 302
    supply = Supply.objects.get(slug="beijing-picture")
    assert (supply.modality, supply.real_person_policy) == ("image", "")
    page = admin.get("/console/supplies/beijing-picture/try/?try=1&mode=text_to_image&prompt=x&size=1K")
    assert page.context["trial"].quote_micros == 200_000


def test_an_operator_without_the_role_for_prices_adds_it_without_one(engine: Engine, sign_in: SignIn) -> None:
    operator = sign_in("operator")
    draft = begun(operator, "cost")
    assert "Cost rules are made by: finance, admin." in operator.get(f"{NEW}{draft}/cost/").content.decode()
    refused = AuditEntry.objects.filter(action="refused change")
    assert keep(operator, "cost", draft).status_code == 403
    assert refused.get().after == {"method": "POST", "needs": "price"}
    assert keep(operator, "cost", draft, do="without").status_code == 302
    page = operator.get("/console/supplies/beijing-next/try/")
    assert {need.code: need.is_met for need in page.context["needs"]} == {
        "capability": True,
        "slots": True,
        "price": False,
        "credential": True,
        "switched_on": True,
        "tried": False,
        "bound": False,
    }
    tried = operator.get("/console/supplies/beijing-next/try/?try=1&mode=text_to_video&prompt=x")
    assert (tried.status_code, tried.context["unready"].code) == (422, "no_price")


TRY = "/console/supplies/beijing-seedance-2-0/try/"
ASKED = "try=1&mode=text_to_video&prompt=a+boat&duration_s=4&resolution=480p&aspect_ratio=16:9"


def confirmed_call(client: Client, **changes: str) -> Any:
    page = client.get(f"{TRY}?{ASKED}")
    form = {"confirm": page.context["token"], "query": page.context["query"], **changes}
    return client.post(f"{TRY}now/", form)


def tried(client: Client) -> str:
    (need,) = (need for need in client.get(TRY).context["needs"] if need.code == "tried")
    return str(need.state)


def test_a_trial_says_its_cost_calls_the_provider_once_and_shows_its_answer(
    engine: Engine, admin: Client
) -> None:
    page = admin.get(f"{TRY}?{ASKED}")
    assert tried(admin) == "missing"
    assert page.context["trial"].quote_micros == 1_800_000
    assert "Send it for CN¥1.80" in page.content.decode()
    assert not engine.accepted()
    form = {"confirm": page.context["token"], "query": page.context["query"]}
    for _ in range(2):
        assert admin.post(f"{TRY}now/", form).status_code == 302
    trial = TrialCall.objects.get()
    assert trial.state == "asked"
    assert not engine.accepted(), "no network before the worker's turn"
    engine.drain()
    trial.refresh_from_db()
    assert (trial.state, list(engine.accepted())) == ("accepted", [trial.public_id])
    assert tried(admin) == "under_way", "it may still fail"
    assert "does not ask the provider by itself" in admin.get(TRY).content.decode()
    engine.step(20)
    look = f"{TRY}{trial.public_id}/look/"
    assert "This is what the provider says now." in admin.post(look, follow=True).content.decode()
    trial.refresh_from_db()
    assert trial.state == "succeeded"
    assert tried(admin) == "done"
    text = admin.get(TRY).content.decode()
    assert trial.provider_job_id in text
    assert "secrets masked" in text
    assert "X-Tos-Signature" not in text
    assert "beijing-account-key" not in text
    told = AuditEntry.objects.get(action="try supply").after
    assert told == {"trial": trial.public_id, "quote_micros": 1_800_000, "currency": "CNY"}
    entry = ProviderUsageEntry.objects.get()
    assert (entry.attempt, entry.amount_micros, entry.platform_loss) == (trial.public_id, 1_800_000, True)
    needs = {need.code: need.is_met for need in admin.get(TRY).context["needs"]}
    assert needs["bound"]


def test_no_transaction_is_open_while_the_provider_is_called_and_a_lost_worker_leaves_it_unknown(
    engine: Engine, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []
    monkeypatch.setattr(try_supply, "_allowed", lambda: inside.append(connection.in_atomic_block))
    confirmed_call(admin)
    engine.drain()
    assert inside == [False]
    lost = timezone.now() - timedelta(minutes=11)
    TrialCall.objects.update(state="sending", sent_at=lost, provider_job_id="", answer=None)
    try_supply.send_trial(TrialCall.objects.get().pk, timezone.now)
    assert len(engine.accepted()) == 1, "rung again, it is not sent again"
    page = admin.get(TRY)
    assert page.context["settled"]
    assert "Nobody knows whether the provider took it" in page.content.decode()


def test_the_answer_of_a_call_is_kept_though_the_session_broke_during_it(
    engine: Engine, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_session() -> None:
        with connection.cursor() as cursor, pytest.raises(OperationalError):
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(try_supply, "_allowed", break_session)
    confirmed_call(admin)
    engine.drain()
    trial = TrialCall.objects.get()
    assert (trial.state, list(engine.accepted())) == ("accepted", [trial.public_id])
    assert ProviderUsageEntry.objects.get().amount_micros == trial.quote_micros


def test_p1_the_page_asks_as_often_however_often_it_was_tried(engine: Engine, admin: Client) -> None:
    confirmed_call(admin)
    counts = []
    for _ in range(2):
        confirmed_call(admin)
        with CaptureQueriesContext(connection) as queries:
            admin.get(TRY)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert not [query for query in queries if "COUNT(" in query["sql"] and "LIMIT" not in query["sql"]]


def test_a_refused_call_costs_nothing_and_says_why(engine: Engine, admin: Client) -> None:
    engine.simulator.script({"rules": [{"when": {"call": "submit"}, "do": {"error": "AccountOverdueError"}}]})
    confirmed_call(admin)
    engine.drain()
    trial = TrialCall.objects.get()
    assert trial.state == "refused"
    assert trial.detail.startswith("balance")
    assert not ProviderUsageEntry.objects.exists()
    text = admin.get(TRY).content.decode()
    assert "Refused: nothing was begun" in text
    assert "does not ask the provider by itself" not in text
    assert tried(admin) == "failed"
    assert admin.post(f"{TRY}{trial.public_id}/look/", follow=True).status_code == 200


def test_what_was_not_confirmed_is_not_sent(
    engine: Engine, admin: Client, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = admin.get(f"{TRY}?{ASKED}")
    longer = page.context["query"].replace("duration_s=4", "duration_s=12")
    refused = confirmed_call(admin, query=longer)
    assert refused.status_code == 409
    assert "is not what was confirmed" in refused.content.decode()
    assert confirmed_call(admin, confirm="").status_code == 403
    for wrong in ("duration_s=99", "mode=image_to_video", "duration_s=soon"):
        response = admin.get(f"{TRY}?{ASKED}&{wrong}")
        assert (response.status_code, response.context["unready"].code) == (422, "bad_request"), wrong
    with monkeypatch.context() as held:
        held.setattr("dispatch.trial.is_held", lambda _channel: True)
        assert admin.get(f"{TRY}?{ASKED}").context["unready"].code == "held_back"
    finance = sign_in("finance", username="zhou")
    text = finance.get(TRY).content.decode()
    assert "Calls are made by: operator, admin." in text
    assert finance.post(f"{TRY}now/").status_code == 403
    assert not TrialCall.objects.exists()


def test_a_call_whose_answer_is_lost_stays_unknown_and_is_never_sent_again(
    engine: Engine, admin: Client
) -> None:
    engine.simulator.script(
        {"rules": [{"when": {"call": "submit"}, "do": {"answer": "drop_after_acceptance"}}]}
    )
    confirmed_call(admin)
    engine.drain()
    trial = TrialCall.objects.get()
    assert trial.state == "unknown"
    assert tried(admin) == "unknown"
    engine.run(600, 60)
    assert engine.accepted() == {trial.public_id: 1}
    assert "our reference" in admin.get(TRY).content.decode()


def test_a_new_supply_can_be_bound_at_once(engine: Engine, admin: Client) -> None:
    keep(admin, "cost", begun(admin, "cost"))
    page = admin.get("/console/supplies/beijing-next/try/")
    fits = {fit.model.slug: (fit.fits, fit.examples, fit.is_bound) for fit in page.context["fits"]}
    assert "seedance-2.0-933" in fits
    edit = admin.get("/console/models/seedance-2.0-933/edit/").content.decode()
    assert "<option>beijing-next</option>" in edit
