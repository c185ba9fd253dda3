"""Rows of the list of jobs: narrowed, ticked, exported together, one cancelled; and views of lists."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from catalog.models import AuditEntry
from dispatch.models import Attempt, Job, SavedView
from tests.console import SignIn
from tests.engine import Engine
from tests.factories import (
    AttemptFactory,
    JobFactory,
    SelectionRoundFactory,
    SupplyFactory,
    succeeded_job,
)
from tests.snapshots import recorded

LIST, EXPORT = "/console/jobs/", "/console/jobs/export/"
FILTERED = f"{LIST}?state=queued&state=running&modality=video"


@pytest.fixture
def li(sign_in: SignIn) -> Client:
    return sign_in("operator")


def ids_of(response: Any) -> set[str]:
    return {row.job.public_id for row in response.context["rows"]}


def lines_of(response: Any) -> list[dict[str, str]]:
    text = b"".join(response.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_jobs_are_found_by_what_happened_to_them(li: Client) -> None:
    kestrel, finch = SupplyFactory(slug="kestrel-hd"), SupplyFactory(slug="finch")
    switched, dropped, lost = JobFactory(state="failed"), succeeded_job(supply=finch), JobFactory()
    AttemptFactory(job=switched, supply=kestrel, state="failed")
    AttemptFactory(job=switched, number=2, supply=finch, state="failed")
    Job.objects.filter(pk=dropped.pk).update(dropped_inputs=["reference_videos"])
    AttemptFactory(job=lost, supply=kestrel, state="submission_uncertain")
    SelectionRoundFactory(job=lost, snapshot=recorded())
    old = JobFactory(created_at=timezone.now() - timedelta(days=3))

    def found(**query: Any) -> set[str]:
        return ids_of(li.get(LIST, query))

    assert found(had="switch") == {switched.public_id}
    assert found(had="dropped") == {dropped.public_id}
    assert found(had=["uncertain"]) == {lost.public_id}
    assert found(had=["switch", "dropped"]) == set()
    assert found(supply="finch") == {switched.public_id, dropped.public_id}
    assert found(supply="gone") == set()
    assert found(supply="gone", older=old.public_id) == set()
    assert found(excluded="heron-v3") == {lost.public_id}
    assert found(excluded="nobody") == set()
    assert old.public_id not in found(since="24h")
    assert old.public_id in found(since="7d")
    words = [text for text, _query in li.get(LIST, {"had": "switch", "since": "7d"}).context["active"]]
    assert words == ["Last 7 days", "had a switch"]
    beat = li.get(
        LIST, {"had": "uncertain"}, headers={"HX-Request": "true", "Console-Rows": switched.public_id}
    )
    assert "no longer matches" in beat.content.decode()


def test_g14_ticked_jobs_are_exported_and_the_list_is_left_as_it_is(li: Client) -> None:
    first, second, _other = succeeded_job(), JobFactory(state="failed"), JobFactory()
    response = li.post(f"{EXPORT}ticked/", {"ticked": [first.public_id, second.public_id]})
    assert response["Content-Disposition"].startswith("attachment")
    lines = lines_of(response)
    assert {line["job"] for line in lines} == {first.public_id, second.public_id}
    by_id = {line["job"]: line for line in lines}
    assert by_id[first.public_id]["provider_cost"] == "0.20"
    assert by_id[first.public_id]["attempts"] == "1"
    assert by_id[second.public_id]["supply"] == ""
    assert AuditEntry.objects.get().action == "export jobs"
    assert li.post(f"{EXPORT}ticked/")["Location"] == LIST


def test_g15_an_export_of_all_that_match_says_the_same_after_reload_and_is_refused_when_it_changed(
    li: Client,
) -> None:
    jobs = [JobFactory(state="failed") for _ in range(3)]
    JobFactory(state="queued")
    matching = li.get(LIST, {"state": ["failed", "expired"]}).context["matching"]
    page = li.get(f"{EXPORT}?{matching}")
    bulk = page.context["bulk"]
    assert bulk.count == 3
    assert page.context["words"] == ["Failed", "Expired"]
    late = JobFactory(state="failed", created_at=timezone.now())
    assert li.get(f"{EXPORT}?{matching}").context["bulk"] == bulk
    form = {"confirm": page.context["token"], "query": bulk.address}
    changed = li.post(f"{EXPORT}now/", form | {"query": bulk.address.replace("expired", "queued")})
    assert changed.status_code == 409
    lines = lines_of(li.post(f"{EXPORT}now/", form))
    assert {line["job"] for line in lines} == {job.public_id for job in jobs}
    assert late.public_id not in {line["job"] for line in lines}
    Job.objects.filter(pk=jobs[0].pk).update(state="expired")
    assert li.post(f"{EXPORT}now/", form).status_code == 200, "it matches still"
    Job.objects.filter(pk=jobs[1].pk).update(state="cancelled")
    refused = li.post(f"{EXPORT}now/", form)
    assert refused.status_code == 409
    assert refused.context["bulk"].count == 2
    assert AuditEntry.objects.filter(action="export jobs").count() == 2


def test_g9_cancelling_a_job_from_a_filtered_list_returns_to_it(engine: Engine, sign_in: SignIn) -> None:
    li = sign_in("operator")
    job = engine.job()
    listed = li.get(FILTERED).content.decode()
    address = listed.split(f'id="{job.public_id}-cancel"')[1].split('href="')[1].split('"')[0]
    page = li.get(address.replace("&amp;", "&"))
    assert page.context["back"] == FILTERED
    assert "Ends at once" in page.content.decode()
    form = {"confirm": page.context["token"], "next": page.context["back"], "reason": ""}
    cancel = f"{LIST}{job.public_id}/cancel/now/"
    assert li.post(cancel, form).status_code == 422
    assert li.post(cancel, {"next": FILTERED, "reason": "x"}).status_code == 403
    for _ in range(2):
        assert li.post(cancel, form | {"reason": "asked for by phone"})["Location"] == FILTERED
    engine.run(10)
    assert engine.reload(job).state == "cancelled"
    entry = AuditEntry.objects.get(action="cancel job")
    assert (entry.actor, entry.after) == ("li.m", {"reason": "asked for by phone"})
    told = li.get(f"{LIST}{job.public_id}/").content.decode()
    assert "Cancelled by li.m: asked for by phone" in told
    assert f'id="{job.public_id}-cancel"' not in li.get(LIST).content.decode()
    again = li.get(f"{LIST}{job.public_id}/cancel/?next=https://evil.example.com/")
    assert again.context["back"] == f"{LIST}{job.public_id}/"
    assert "there is nothing to cancel" in again.content.decode()


def test_the_job_page_tells_which_model_auto_picked_and_what_the_others_would_have_done(
    engine: Engine, sign_in: SignIn
) -> None:
    auto = {"prompt": "a lighthouse in a storm", "duration_s": 5, "routing_mode": "auto"}
    cheapest, only = engine.job(auto), engine.job(auto, duration_s=7)
    li = sign_in("viewer")
    text = " ".join(li.get(f"{LIST}{cheapest.public_id}/").content.decode().split())
    assert "The customer left the model open: seedance-1.0-pro was picked." in text
    assert "Of those in the best tier it costs least." in text
    assert text.count("data-offer=") == 2
    text = li.get(f"{LIST}{only.public_id}/").content.decode()
    assert "It was the only one that could take the request." in text
    assert "Does not take it:" in text
    assert "data-offer" not in li.get(f"{LIST}{engine.job().public_id}/").content.decode()


def test_the_events_of_a_job_are_narrowed_to_failures_and_keep_their_numbers(
    engine: Engine, sign_in: SignIn
) -> None:
    li = sign_in("viewer")
    job = engine.job()
    engine.finish(job)
    page = li.get(f"{LIST}{job.public_id}/")
    assert [number for number, _event in page.context["shown_events"]][:2] == [1, 2]
    text = li.get(f"{LIST}{job.public_id}/?events=failures").content.decode()
    assert "None of them tells of a failure." in text
    assert Attempt.objects.filter(job=job, state="succeeded").exists()


def test_a_job_that_does_not_exist_leaves_its_id_in_the_search_and_a_record_holds_no_words_of_the_customer(
    li: Client,
) -> None:
    missing = li.get(f"{LIST}job_nothing/")
    assert missing.status_code == 404
    assert 'value="job_nothing"' in missing.content.decode()
    job = succeeded_job()
    request = {**job.request, "prompt": "a very private lighthouse"}
    Job.objects.filter(pk=job.pk).update(request=request, metadata={"theirs": "a very private note"})
    page = li.get(f"{LIST}{job.public_id}/")
    assert "very private" not in page.content.decode()
    record = page.context["record"]
    assert record["public_id"] == job.public_id
    assert record["attempts"][0]["provider_job"]["status"] == "succeeded"
    assert "id" not in record


def test_a_view_is_a_list_under_a_name_of_its_own_or_for_everybody(li: Client, sign_in: SignIn) -> None:
    queued = JobFactory(state="queued")
    JobFactory(state="failed")
    query = "state=queued&state=running&older=job_x&as_of=2026&ticked=job_y"
    kept = li.post("/console/views/", {"page": "jobs", "name": "Waiting", "query": query}, follow=True)
    assert kept.redirect_chain[-1][0] == f"{LIST}?state=queued&state=running"
    assert ids_of(kept) == {queued.public_id}
    assert "Saved as “Waiting”." in kept.content.decode()
    li.post("/console/views/", {"page": "jobs", "name": "All failed", "query": "state=failed", "shared": "1"})
    li.post("/console/views/", {"page": "jobs", "name": "Waiting", "query": "state=queued"})
    assert SavedView.objects.get(name="Waiting").query == "state=queued"
    wang = sign_in("viewer", username="wang.l")
    text = wang.get(LIST).content.decode()
    assert "shared by li.m" in text
    assert "Waiting" not in text
    shared = SavedView.objects.get(name="All failed")
    gone = wang.post(f"/console/views/{shared.public_id}/forget/", follow=True)
    assert gone.status_code == 200
    assert SavedView.objects.filter(pk=shared.pk).exists(), "it is not theirs"
    back = li.post(f"/console/views/{shared.public_id}/forget/")
    assert back["Location"] == f"{LIST}?state=failed"
    assert li.post("/console/views/", {"page": "strips", "name": "x", "query": ""}).status_code == 404
    assert "needs a name" in li.post("/console/views/", {"page": "jobs"}, follow=True).content.decode()
    long = "&".join(f"state=queued&x{number}={'y' * 20}" for number in range(30))
    refused = li.post("/console/views/", {"page": "jobs", "name": "long", "query": long}, follow=True)
    assert "too long for a view" in refused.content.decode()


def test_a_view_whose_filter_means_nothing_any_more_opens_all_the_same(li: Client) -> None:
    JobFactory()
    for page in ("alerts", "jobs", "refusals", "degraded", "ledger", "audit"):
        query = "model=gone&customer=cus_gone&code=gone&supply=gone&subject=gone&provider=gone"
        saved = li.post("/console/views/", {"page": page, "name": "gone", "query": query}, follow=True)
        assert saved.status_code == 200, page
        assert 'aria-current="true">gone</a>' in saved.content.decode(), page
