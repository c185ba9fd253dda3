"""Uploads: taken in bounds, proved, kept once, named in jobs, and given to providers."""

import base64
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.models import Supply
from catalog.revision import bump_revision
from dispatch.inputs.delivery import LINK_LASTS
from dispatch.models import Asset, Job
from dispatch.outputs.storage import MediaStore
from tests.dispatch.outputs import media_files
from tests.dispatch.outputs.test_addresses import BY_TEXT
from tests.dispatch.test_api import problem
from tests.engine import IMAGE, VIDEO, Engine

ASSETS = "/api/v1/assets/"


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_DIR = tmp_path / "media"
    return settings.MEDIA_DIR


@pytest.fixture(scope="module")
def png(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return media_files.image(tmp_path_factory.mktemp("media") / "a.png", "PNG").read_bytes()


@pytest.fixture(scope="module")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return media_files.video(tmp_path_factory.mktemp("media") / "a.mp4", seconds=1).read_bytes()


def upload(engine: Engine, content: bytes, name: str = "a.bin", **fields: Any) -> Any:
    return engine.api.post(ASSETS, {"file": SimpleUploadedFile(name, content), **fields}, format="multipart")


def stranger_of(engine: Engine) -> Any:
    other = create_customer("globex", engine.now, group="studio", deposit_micros=10**9)
    return engine.client(issue_key(other)[1].secret)


def parts(media: Path) -> list[Path]:
    return list(MediaStore(media).incoming().iterdir())


def sent(engine: Engine) -> Mapping[str, Any]:
    """The last request that the provider took."""
    return list(engine.simulator.world._tasks.values())[-1].request


def test_an_upload_is_proved_and_kept_once_for_each_customer(engine: Engine, media: Path, png: bytes) -> None:
    first = upload(engine, png, "holiday.exe")
    assert first.status_code == 201, first.content
    asset = first.json()
    assert (asset["kind"], asset["content_type"]) == ("image", "image/png")
    assert (asset["width"], asset["height"], asset["size_bytes"]) == (64, 48, len(png))
    raw = engine.api.post(ASSETS, png, content_type="application/x-anything")
    assert (raw.status_code, raw.json()) == (200, asset), "the same bytes, as a body this time"
    stored = Asset.objects.get()
    assert MediaStore(media).path(stored.path).read_bytes() == png
    assert parts(media) == []

    assert engine.api.get(f"{ASSETS}{asset['id']}/").json() == asset
    assert engine.api.get(ASSETS).json()["results"] == [asset]
    stranger = stranger_of(engine)
    assert problem(stranger.get(f"{ASSETS}{asset['id']}/")) == (404, "asset_not_found")
    assert stranger.get(ASSETS).json()["results"] == []
    theirs = stranger.post(ASSETS, png, content_type="image/png")
    assert (theirs.status_code, theirs.json()["sha256"]) == (201, asset["sha256"])
    assert theirs.json()["id"] != asset["id"]


def test_the_same_bytes_sent_at_once_make_one_asset(engine: Engine, png: bytes) -> None:
    def send(_: int) -> tuple[int, str]:
        try:
            response = upload(engine, png)
            return response.status_code, response.json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(send, range(4)))
    assert len({asset_id for _, asset_id in answers}) == Asset.objects.count() == 1
    assert sorted(status for status, _ in answers).count(201) == 1


def test_what_is_no_medium_or_too_large_is_refused_and_leaves_nothing(
    engine: Engine, settings: Any, media: Path, png: bytes, mp4: bytes
) -> None:
    assert problem(upload(engine, b"<svg xmlns='http://www.w3.org/2000/svg'/>" * 9)) == (422, "asset_invalid")
    assert problem(upload(engine, png[:-40])) == (422, "asset_invalid"), "cut off"
    assert problem(upload(engine, b"")) == (422, "asset_invalid")
    assert problem(engine.api.post(ASSETS, b"", content_type="image/png")) == (400, "invalid_request")
    assert problem(upload(engine, png, purpose="reference")) == (400, "invalid_request")
    other_field = {"picture": SimpleUploadedFile("a.png", png)}
    assert problem(engine.api.post(ASSETS, other_field, format="multipart")) == (400, "invalid_request")
    settings.ASSET_IMAGE_MAX_BYTES = len(png) - 1
    assert problem(upload(engine, png)) == (413, "asset_too_large"), "by the bound of its kind"
    assert problem(engine.api.post(ASSETS, png, content_type="image/png")) == (413, "asset_too_large")
    assert upload(engine, mp4).json()["kind"] == "video", "a video's bound is another"
    settings.ASSET_VIDEO_MAX_BYTES = settings.ASSET_AUDIO_MAX_BYTES = 10
    assert problem(upload(engine, mp4)) == (413, "asset_too_large"), (
        "by the declared length, before a byte is read"
    )
    assert parts(media) == []
    assert Asset.objects.count() == 1


def test_uploading_needs_a_key_that_may_submit(engine: Engine, png: bytes) -> None:
    reader = engine.client(issue_key(engine.customer, scopes=("read",))[1].secret)
    assert problem(reader.post(ASSETS, png, content_type="image/png")) == (403, "permission_denied")
    assert not Asset.objects.exists()


def test_a_picture_goes_inline_where_we_have_no_public_address(engine: Engine, png: bytes) -> None:
    asset_id = upload(engine, png).json()["id"]
    job = engine.job(IMAGE, mode="image_edit", reference_images=[asset_id])
    engine.finish(job)
    assert job.state == "succeeded"
    assert sent(engine)["image"] == "data:image/png;base64," + base64.b64encode(png).decode()
    attempt = job.attempts.get()
    assert "base64" not in str(attempt.compile_plan), "the plan is kept without the bytes"
    assert job.request["reference_images"][0]["sha256"] == Asset.objects.get(kind="input").sha256


def test_a_file_goes_by_a_signed_address_that_ends(
    engine: Engine, settings: Any, media: Path, png: bytes, mp4: bytes
) -> None:
    settings.PUBLIC_URL = "https://frameyard.example/"
    image, video = upload(engine, png).json()["id"], upload(engine, mp4).json()["id"]
    Supply.objects.update(state="draining")
    bump_revision()
    job = engine.job(VIDEO, reference_images=[image], reference_videos=[video])
    engine.run(900, step_s=60)
    Supply.objects.update(state="enabled")
    bump_revision()
    engine.finish(job)
    assert job.state == "succeeded"
    sent_at = job.attempts.get().request_started_at
    assert sent_at is not None
    assert sent_at - job.created_at > timedelta(minutes=14), "it waited, and was signed when it left"
    urls = [item[item["type"]]["url"] for item in sent(engine)["content"][1:]]
    assert [url.partition("?")[0] for url in urls] == [
        f"https://frameyard.example/api/v1/assets/{image}/file.png",
        f"https://frameyard.example/api/v1/assets/{video}/file.mp4",
    ]
    assert f"expires={int((sent_at + LINK_LASTS).timestamp())}&" in urls[0]
    path = urls[0].removeprefix("https://frameyard.example")
    provider = type(engine.api)()  # without a key
    answer = provider.get(path)
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, png)
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert provider.get(path, headers={"Range": "bytes=0-3"}).status_code == 206
    for spoilt in (
        path[:-1],
        path.replace(image, video),
        path.replace("file.png", "file.mp4"),
        path.split("?")[0],
    ):
        assert problem(provider.get(spoilt)) == (404, "asset_not_found")
    MediaStore(media).remove(Asset.objects.get(public_id=video).path)
    gone = urls[1].removeprefix("https://frameyard.example")
    assert problem(provider.get(gone)) == (404, "asset_not_found")
    engine.run(73 * 3600, step_s=73 * 3600)
    assert problem(provider.get(path)) == (404, "asset_not_found")


def test_a_video_reaches_nobody_without_a_public_address(engine: Engine, mp4: bytes) -> None:
    video = upload(engine, mp4).json()["id"]
    job = engine.job(VIDEO, reference_videos=[video], degradation="strict")
    engine.run(3)
    assert (engine.reload(job).state, job.error_code) == ("failed", "no_supply")
    assert "no public address" in str(job.rounds.get().snapshot)


def test_a_file_that_was_lost_is_told_before_anything_is_sent(
    engine: Engine, media: Path, png: bytes
) -> None:
    asset_id = upload(engine, png).json()["id"]
    MediaStore(media).remove(Asset.objects.get(kind="input").path)
    job = engine.job(IMAGE, mode="image_edit", reference_images=[asset_id])
    engine.finish(job)
    assert (job.state, job.error_code) == ("failed", "asset_unavailable")
    assert engine.simulator.world.log()["posts"] == []


def test_an_unknown_id_a_strangers_and_one_of_another_kind_are_refused(
    engine: Engine, png: bytes, mp4: bytes
) -> None:
    theirs = stranger_of(engine).post(ASSETS, png, content_type="image/png").json()["id"]
    video = upload(engine, mp4).json()["id"]
    answers = []
    for unknown in (theirs, "ast_00000000000000000000000000"):
        response = engine.submit(reference_images=["https://media.example/a.png", unknown], key="k")
        assert problem(response) == (422, "asset_not_found")
        assert response.json()["field"] == "reference_images[1]"
        answers.append(response.json()["detail"].replace(unknown, "it"))
    assert answers[0] == answers[1], "a stranger's file is as unknown as none"
    response = engine.submit(first_frame=video)
    assert problem(response) == (400, "invalid_request")
    assert response.json()["field"] == "first_frame"
    assert not Job.objects.exists()


def test_the_same_bytes_are_the_same_content_whatever_names_them(engine: Engine, png: bytes) -> None:
    asset_id = upload(engine, png).json()["id"]
    jobs = [engine.job(IMAGE, mode="image_edit", reference_images=[asset_id]) for _ in range(2)]
    other = engine.job(IMAGE, mode="image_edit", reference_images=["https://media.example/a.png"])
    assert jobs[0].content_fingerprint == jobs[1].content_fingerprint != other.content_fingerprint


def test_an_address_that_leads_inside_is_refused_where_it_stands(engine: Engine, settings: Any) -> None:
    settings.ALLOW_PRIVATE_ADDRESSES = False
    refused = [url for url, _ in BY_TEXT if url.strip() == url]
    assert len(refused) > 60
    for url in refused:
        assert problem(engine.submit(reference_images=[url])) == (400, "invalid_request"), url
        assert problem(engine.submit(first_frame=url)) == (400, "invalid_request"), url
    assert engine.submit(reference_images=["https://media.example/a.png"]).status_code == 201


def test_the_same_bytes_again_bring_back_a_file_that_was_lost(
    engine: Engine, media: Path, png: bytes
) -> None:
    first = upload(engine, png).json()
    path = media / Asset.objects.get().path
    path.unlink()
    again = upload(engine, png)
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    assert path.read_bytes() == png
