"""The list of jobs: filters in the address, pages that neither repeat nor skip, beats that move no row."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dispatch.models import Job
from tests.console import SignIn
from tests.factories import (
    NOW,
    ApiKeyFactory,
    AttemptFactory,
    CustomerFactory,
    JobFactory,
    PublicModelFactory,
    succeeded_job,
)

BEAT = {"HX-Request": "true"}


@pytest.fixture
def viewer(sign_in: SignIn) -> Client:
    return sign_in("viewer")


def make_jobs(count: int, **values: object) -> list[Job]:
    """Oldest first, a minute apart; two of them in the same instant."""
    key = values.pop("api_key", None) or ApiKeyFactory()
    model = values.pop("public_model", None) or PublicModelFactory()
    minutes = [*range(count - 1), count - 2]
    return [
        JobFactory(api_key=key, public_model=model, created_at=NOW + timedelta(minutes=minute), **values)
        for minute in minutes[:count]
    ]


def ids_of(response: object) -> list[str]:
    return [line.public_id for line in response.context["lines"]]  # type: ignore[attr-defined]


def newest_first(jobs: Iterable[Job]) -> list[str]:
    return [job.public_id for job in sorted(jobs, key=lambda job: (job.created_at, job.pk), reverse=True)]


def test_g8_the_pages_of_a_list_show_each_job_once_forwards_and_back(viewer: Client) -> None:
    expected = newest_first(make_jobs(120))
    first = viewer.get("/console/jobs/")
    second = viewer.get("/console/jobs/", {"older": first.context["page"].older})
    third = viewer.get("/console/jobs/", {"older": second.context["page"].older})
    assert ids_of(first) + ids_of(second) + ids_of(third) == expected
    assert third.context["page"].older == ""
    back = viewer.get("/console/jobs/", {"newer": third.context["page"].newer})
    assert ids_of(back) == ids_of(second)
    assert ids_of(viewer.get("/console/jobs/", {"newer": back.context["page"].newer})) == ids_of(first)


def test_g10_jobs_that_come_meanwhile_neither_repeat_a_row_nor_push_one_out(viewer: Client) -> None:
    jobs = make_jobs(70)
    first = viewer.get("/console/jobs/")
    make_jobs(5, api_key=jobs[0].api_key, public_model=jobs[0].public_model)
    for late in Job.objects.order_by("-id")[:5]:
        Job.objects.filter(pk=late.pk).update(created_at=NOW + timedelta(days=1))
    second = viewer.get("/console/jobs/", {"older": first.context["page"].older})
    assert ids_of(first) + ids_of(second) == newest_first(jobs)


def test_filters_are_read_from_the_address_and_combine(viewer: Client) -> None:
    failed = JobFactory(state="failed")
    expired = JobFactory(state="expired")
    image = JobFactory(state="failed", public_model=PublicModelFactory(image=True))
    JobFactory(state="queued")
    found = viewer.get("/console/jobs/", {"state": ["failed", "expired"]})
    assert set(ids_of(found)) == {failed.public_id, expired.public_id, image.public_id}
    assert ids_of(viewer.get("/console/jobs/", {"state": "failed", "modality": "image"})) == [image.public_id]
    assert ids_of(viewer.get("/console/jobs/", {"customer": failed.customer.public_id})) == [failed.public_id]
    assert ids_of(viewer.get("/console/jobs/", {"model": expired.public_model.slug})) == [expired.public_id]


def test_a_value_that_does_not_exist_is_no_filter(viewer: Client) -> None:
    job = JobFactory()
    response = viewer.get("/console/jobs/", {"state": "sleeping", "modality": "smell", "size": "7"})
    assert ids_of(response) == [job.public_id]
    assert response.context["wanted"].size == 50


def test_g6_g8_a_removed_filter_keeps_the_others_and_drops_the_cursor(viewer: Client) -> None:
    job = JobFactory(state="failed")
    response = viewer.get(
        "/console/jobs/", {"state": ["failed", "expired"], "modality": "video", "newer": job.public_id}
    )
    without = dict(response.context["active"])
    assert without["Failed"] == "state=expired&modality=video"
    assert without["Video"] == "state=failed&state=expired"


def test_g16_an_empty_list_says_whether_nothing_exists_or_a_filter_hides_all(viewer: Client) -> None:
    assert "No job yet" in viewer.get("/console/jobs/").content.decode()
    JobFactory(state="queued")
    hidden = viewer.get("/console/jobs/", {"state": "failed", "modality": "image"}).content.decode()
    assert "No job matches these 2 filters" in hidden
    assert hidden.count("Remove the filter") == 2


def test_p1_the_number_of_queries_does_not_grow_with_the_rows(viewer: Client) -> None:
    viewer.get("/console/jobs/")
    counts = []
    for _ in range(2):
        for _ in range(10):
            succeeded_job()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            viewer.get("/console/jobs/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 13
    counted = [query["sql"] for query in queries if "COUNT(" in query["sql"].upper()]
    assert all("LIMIT" in sql for sql in counted), "P3: nothing is counted to its end"


def test_g11_a_person_gets_the_page_a_beat_only_its_rows(viewer: Client) -> None:
    job = JobFactory()
    page = viewer.get("/console/jobs/")
    beat = viewer.get("/console/jobs/", headers=BEAT | {"Console-Rows": job.public_id})
    back = viewer.get("/console/jobs/", headers=BEAT | {"HX-History-Restore-Request": "true"})
    assert b"<html" in page.content
    assert b"<html" not in beat.content
    assert job.public_id.encode() in beat.content
    assert b"<html" in back.content
    assert all("HX-Request" in response["Vary"] for response in (page, beat, back))


def test_l4_l5_a_beat_keeps_the_rows_in_place_and_announces_what_is_new(viewer: Client) -> None:
    old, new = make_jobs(2, state="queued")
    Job.objects.filter(pk=new.pk).update(state="failed", finished_at=NOW, created_at=NOW + timedelta(hours=1))
    late = JobFactory(state="queued", created_at=NOW + timedelta(hours=2))
    shown = f"{new.public_id},{old.public_id}"
    beat = viewer.get("/console/jobs/", {"state": "queued"}, headers=BEAT | {"Console-Rows": shown})
    assert ids_of(beat) == [new.public_id, old.public_id]
    text = beat.content.decode()
    assert "no longer matches" in text
    assert "1 new job. Show" in text
    assert late.public_id not in text


def test_l12_a_beat_that_would_say_the_same_is_answered_304_with_the_time_of_the_data(viewer: Client) -> None:
    job = succeeded_job()
    headers = BEAT | {"Console-Rows": job.public_id}
    first = viewer.get("/console/jobs/", headers=headers)
    again = viewer.get("/console/jobs/", headers=headers | {"HX-PTag": first["HX-PTag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["Console-As-Of"].endswith("Z")
    changed = Job.objects.filter(pk=job.pk).update(provider_cost_micros=1)
    assert changed == 1
    other = viewer.get("/console/jobs/", headers=headers | {"HX-PTag": first["HX-PTag"]})
    assert other.status_code == 200


def test_a_row_tells_the_supply_of_the_last_attempt_and_what_the_attempts_cost(viewer: Client) -> None:
    job = JobFactory(state="running", api_key=ApiKeyFactory(customer=CustomerFactory(name="Lumen <Films>")))
    AttemptFactory(job=job, state="failed")
    second = AttemptFactory(job=job, number=2, state="running")
    Job.objects.filter(pk=job.pk).update(provider_cost_micros=123_450)
    text = viewer.get("/console/jobs/").content.decode()
    assert second.supply.slug in text
    assert "2/2" in text
    assert "$0.12345" in text
    assert "Lumen &lt;Films&gt;" in text


def test_no_integer_key_leaves_the_list(viewer: Client) -> None:
    job = JobFactory()
    Job.objects.filter(pk=job.pk).update(created_at=NOW)
    response = viewer.get("/console/jobs/", {"size": 100})
    assert job.public_id in response.content.decode()
    assert f'"{job.pk}"' not in response.content.decode()


def test_a_row_drawn_once_is_drawn_anew_where_it_or_who_looks_at_it_differs(sign_in: SignIn) -> None:
    job = JobFactory(created_at=NOW, state="queued")
    viewer, operator = sign_in("viewer"), sign_in("operator", username="wang.l")

    def row(client: Client) -> str:
        headers = BEAT | {"Console-Rows": job.public_id}
        return client.get("/console/jobs/", headers=headers).content.decode()

    seen = row(viewer)
    assert f"{job.public_id}-cancel" not in seen
    assert f"{job.public_id}-cancel" in row(operator)
    viewer.cookies["zone"] = "Asia/Shanghai"
    assert f"{NOW:%H:%M:%S}</time>" in seen
    assert f"{NOW:%H:%M:%S}</time>" not in row(viewer)
    viewer.cookies["django_language"] = "zh-hans"
    assert "Queued" not in row(viewer)
    del viewer.cookies["zone"], viewer.cookies["django_language"]
    type(job.customer).objects.filter(pk=job.customer_id).update(name="Northlight renamed")
    assert "Northlight renamed" in row(viewer)
