"""Publishing a public model, going back to an earlier revision, and taking it out of production."""

from django.contrib.auth.models import User
from django.test import Client

from catalog.models import AuditEntry, Channel, DispatchPolicy, ModelRevision, PublicModel
from dispatch.models import FormReceipt
from tests.console import SignIn
from tests.dispatch.views_models.editor import (
    OPEN,
    PUBLISH,
    REVIEW,
    SAVE,
    edited,
    keep,
    priorities,
    saved,
    token,
    wang_saves,
)
from tests.models_world import BASE, SLUG, ModelsWorld


def test_e10_a_failing_gate_keeps_it_closed_and_stands_first_with_a_way_back(li: Client) -> None:
    saved(li)
    Channel.objects.update(credential="")
    response = li.post(OPEN, {"confirm": token(li, PUBLISH)})
    text = response.content.decode()
    assert response.status_code == 422
    assert "Nothing was published: 1 gate fails" in text
    gate = response.context["gates"][0]
    assert (gate.number, gate.passed, gate.measured) == (1, False, "0 can serve")
    assert "Go back to revision 2" in text
    assert not PublicModel.objects.get(slug=SLUG).published


def test_e11_a_form_sent_twice_has_one_effect_and_one_answer(li: Client) -> None:
    edited(li)
    form = {"confirm": token(li, REVIEW), "note": "twice"}
    assert [li.post(SAVE, form)["Location"] for _ in range(2)] == [PUBLISH, PUBLISH]
    assert ModelRevision.objects.filter(public_model__slug=SLUG).count() == 3
    form = {"confirm": token(li, PUBLISH)}
    assert [li.post(OPEN, form)["Location"] for _ in range(2)] == [BASE, BASE]
    assert AuditEntry.objects.filter(actor="li.m", action="publish model").count() == 1
    assert FormReceipt.objects.count() == 2


def test_e12_without_the_token_of_its_page_nothing_is_confirmed(li: Client) -> None:
    edited(li)
    for address in (SAVE, OPEN, f"{BASE}withdraw/now/", f"{BASE}revisions/1/revert/"):
        other = token(li, PUBLISH if "withdraw" in address else f"{BASE}withdraw/")
        for form in ({}, {"confirm": "made up"}, {"confirm": other, "note": "x", "why": "x"}):
            assert li.post(address, form).status_code == 403
    assert PublicModel.objects.get(slug=SLUG).published


def test_e15_an_earlier_revision_comes_back_as_a_new_one_through_the_gates(li: Client) -> None:
    page = f"{BASE}revisions/1..2/"
    form = {"confirm": token(li, page)}
    assert li.post(f"{BASE}revisions/1/revert/", form)["Location"] == BASE
    model = PublicModel.objects.get(slug=SLUG)
    assert (model.revision, model.published, priorities()["kestrel-hd"]) == (3, True, 900_000)
    Channel.objects.update(credential="")
    response = li.post(f"{BASE}revisions/2/revert/", {"confirm": token(li, f"{BASE}revisions/2..3/")})
    assert response.status_code == 422
    assert "Revision 2 does not pass the gates now. Nothing was changed." in response.content.decode()
    assert priorities()["kestrel-hd"] == 900_000


def test_e15_any_two_revisions_are_compared(li: Client) -> None:
    text = li.get(f"{BASE}revisions/").content.decode()
    assert "give Kestrel more room" in text
    assert li.get(f"{BASE}revisions/?older=1&newer=2")["Location"] == f"{BASE}revisions/1..2/"
    (only,) = li.get(f"{BASE}revisions/1..2/").context["differences"]
    assert (only.label, only.before, only.after) == (
        "kestrel-hd (tier exact): priority",
        "900,000",
        "910,000",
    )
    assert li.get(f"{BASE}revisions/1..9/").status_code == 404


def test_e16_without_the_role_the_page_says_why_and_a_direct_post_is_refused_and_audited(
    li: Client, sign_in: SignIn
) -> None:
    saved(li)
    operator = sign_in("operator", username="zhao")
    page = operator.get(PUBLISH)
    assert "Publishing needs the role publisher" in page.content.decode()
    assert 'id="publish"' not in page.content.decode()
    assert operator.post(OPEN, {"confirm": page.context["token"]}).status_code == 403
    entry = AuditEntry.objects.get(action="refused change")
    assert (entry.actor, entry.after) == ("zhao", {"method": "POST", "needs": "publish"})


def test_taking_out_of_production_needs_a_reason_and_is_no_alarm(li: Client) -> None:
    page, now = f"{BASE}withdraw/", f"{BASE}withdraw/now/"
    assert li.post(now, {"confirm": token(li, page), "why": " "}).status_code == 422
    text = li.post(now, {"confirm": token(li, page), "why": "rights ended"}, follow=True).content.decode()
    assert "was taken out of production" in text
    assert 'data-off-air="vid-hd-5s"' not in text
    entry = AuditEntry.objects.get(action="withdraw model")
    assert entry.after is not None
    assert (entry.actor, entry.after["why"]) == ("li.m", "rights ended")
    assert "Publish revision 2" in li.get(PUBLISH).content.decode()


def test_publishing_a_revision_that_nobody_looked_at_is_refused(li: Client) -> None:
    saved(li)
    form = {"confirm": token(li, PUBLISH)}
    wang_saves(930_000)
    response = li.post(OPEN, form)
    assert response.status_code == 409
    assert "you looked at revision 3, and revision 4 was saved meanwhile" in response.content.decode()


def test_i2_no_word_of_the_pages_is_left_in_english(li: Client, world: ModelsWorld) -> None:
    li.post("/console/language/", {"language": "zh-hans"})
    world.edit_as(User.objects.get(username="li.m"), {"policy:order": "cost_first"})
    for address in world.pages():
        text = li.get(address).content.decode()
        for english in (
            "Required",
            "nothing is missing",
            "Priority",
            "Published",
            "exact binding",
            "Cost of",
        ):
            assert english not in text, (address, english)


def test_p8_a_form_field_is_shown_as_text(li: Client) -> None:
    keep(li, do="keep", disclosure='<script>alert("x")</script>')
    assert "<script>alert" not in li.get(f"{BASE}edit/").content.decode()
    assert DispatchPolicy.objects.count() == 1
