"""The review of a draft, and what a save does."""

from datetime import timedelta

from django.db import connection
from django.test import Client
from django.utils import timezone

from catalog.models import AuditEntry, PublicModel
from dispatch.models import RefusedMeanwhile
from dispatch.services.keep_house import keep_house
from health.models import Alert
from tests.dispatch.views_models.editor import OPEN, PUBLISH, REVIEW, SAVE, edited, save, saved, token
from tests.factories import api_key
from tests.models_world import SLUG


def test_a_review_states_the_price_and_checks_the_gates_in_advance(li: Client) -> None:
    edited(li, **{f"{supply}@exact:enabled": "" for supply in ("kestrel-hd", "osprey-pro", "heron-v3")})
    response = li.get(REVIEW)
    text = response.content.decode()
    assert "Saving takes vid-hd-5s out of production." in text
    assert "1 job arrived in the last hour," in text
    assert "1 is waiting now." in text
    assert "You would not be able to publish this." in text
    assert [gate.number for gate in response.context["failed"]] == [1]
    assert response.context["gates"][0].number == 1
    assert PublicModel.objects.get(slug=SLUG).published
    assert not AuditEntry.objects.filter(actor="preflight").exists()


def test_e7_the_review_shows_the_order_before_and_after(li: Client) -> None:
    edited(li)
    ((tier, rows),) = li.get(REVIEW).context["orders"]
    assert tier == "exact"
    assert {row.supply: (row.before, row.after) for row in rows} == {
        "osprey-pro": (2, 1),
        "kestrel-hd": (1, 2),
        "heron-v3": (3, 3),
    }


def test_a_save_needs_its_one_line_of_why(li: Client) -> None:
    edited(li)
    response = save(li, note="  ")
    assert response.status_code == 422
    assert "Say in one line why. Nothing was saved." in response.content.decode()
    assert PublicModel.objects.get(slug=SLUG).revision == 2


def test_e8_after_a_save_the_page_shows_what_was_read_back(li: Client) -> None:
    edited(li)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION rounded() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.priority = NEW.priority / 100000 * 100000; RETURN NEW; END';"
            "CREATE TRIGGER rounding BEFORE INSERT OR UPDATE ON catalog_supplybinding"
            " FOR EACH ROW EXECUTE FUNCTION rounded()"
        )
    text = li.post(SAVE, {"confirm": token(li, REVIEW), "note": "x"}, follow=True).content.decode()
    assert "Saved as revision 3 at" in text
    assert "Last published: 2." in text
    assert "900,000" in text
    assert "950,000" not in text


def test_e9_a_save_takes_the_model_off_air_and_every_page_says_so_until_it_is_published(li: Client) -> None:
    model = saved(li)
    assert (model.enabled, model.published, model.revision, model.published_revision) == (False, False, 3, 2)
    _key, secret = api_key()
    customer = Client(headers={"authorization": f"Bearer {secret}"})
    body = {"model": SLUG, "prompt": "x", "duration_s": 5}
    refused = customer.post("/api/v1/jobs/", body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "model_not_published")
    text = li.get("/console/jobs/").content.decode()
    assert 'data-off-air="vid-hd-5s"' in text
    assert "By li.m, since" in text
    assert "1 job was refused meanwhile." in text
    assert (
        'data-off-air="vid-hd-5s"'
        in li.get("/console/strips/", headers={"HX-Request": "true"}).content.decode()
    )
    done = li.post(OPEN, {"confirm": token(li, PUBLISH)}, follow=True)
    assert "Published revision 3 at" in done.content.decode()
    assert "1 job refused." in done.content.decode()
    model.refresh_from_db()
    assert (model.enabled, model.published, model.published_revision) == (True, True, 3)
    assert 'data-off-air="vid-hd-5s"' not in li.get("/console/jobs/").content.decode()
    assert not RefusedMeanwhile.objects.exists()


def test_saved_and_not_published_for_five_minutes_warns_once(li: Client) -> None:
    saved(li)
    own = Alert.objects.filter(subject=f"model:{SLUG}")
    keep_house(timezone.now() + timedelta(minutes=4))
    assert not own.exists()
    for minutes in (5, 6):
        keep_house(timezone.now() + timedelta(minutes=minutes, seconds=1))
    assert own.get().code == "model_not_published"
    li.post(OPEN, {"confirm": token(li, PUBLISH)})
    keep_house(timezone.now() + timedelta(minutes=7, seconds=1))
    assert own.get().resolved_at is not None
