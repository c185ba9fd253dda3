"""From a locator to our own store, and the same again after a worker died on the way."""

import base64
import dataclasses
import hashlib
from pathlib import Path

import pytest

from dispatch.outputs.addresses import Refusal
from dispatch.outputs.fetching import Failure, FetchFailed, FetchRefused
from dispatch.outputs.limits import FetchLimits, MediaLimits
from dispatch.outputs.media import Invalid
from dispatch.outputs.rehosting import Rehosted, Rehosting
from dispatch.outputs.storage import MediaStore, output_name
from tests.dispatch.outputs import media_files
from tests.dispatch.outputs.loopback import Loopback, body

NAME = output_name("att_01abc", 1)


@pytest.fixture
def rehosting(tmp_path: Path, private_too: FetchLimits) -> Rehosting:
    return Rehosting(MediaStore(tmp_path / "media"), private_too, MediaLimits())


def parts_left(rehosting: Rehosting) -> list[Path]:
    return list(rehosting.store.incoming().iterdir())


def test_an_output_is_fetched_with_its_header_proved_and_stored(
    loopback: Loopback, rehosting: Rehosting, mp4: Path
) -> None:
    loopback.answers["/clip"] = body(mp4.read_bytes(), "application/octet-stream")
    outcome = rehosting.from_url(loopback.url("/clip"), NAME, "video", headers={"X-Key": "secret"})
    assert isinstance(outcome, Rehosted)
    assert outcome.stored.sha256 == hashlib.sha256(mp4.read_bytes()).hexdigest()
    assert outcome.stored.size_bytes == mp4.stat().st_size
    assert (outcome.media.content_type, outcome.media.width, outcome.media.duration_ms) == (
        "video/mp4",
        160,
        2000,
    )
    assert rehosting.store.path(NAME).read_bytes() == mp4.read_bytes()
    assert loopback.requests[0].headers["x-key"] == "secret"
    assert parts_left(rehosting) == []


def test_a_worker_that_died_before_it_told_anybody_is_followed_without_a_second_download(
    loopback: Loopback, rehosting: Rehosting, mp4: Path
) -> None:
    loopback.answers["/clip"] = body(mp4.read_bytes())
    first = rehosting.from_url(loopback.url("/clip"), NAME, "video")
    loopback.answers["/clip"] = body(b"", status="410 Gone")  # the address has expired in the meantime
    assert rehosting.from_url(loopback.url("/clip"), NAME, "video") == first
    assert len(loopback.requests) == 1


def test_of_two_workers_with_different_bytes_the_first_counts_for_both(
    loopback: Loopback, rehosting: Rehosting, mp4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = media_files.video(tmp_path / "longer.mp4", seconds=3)
    loopback.answers |= {"/a": body(mp4.read_bytes()), "/b": body(longer.read_bytes())}
    first = rehosting.from_url(loopback.url("/a"), NAME, "video")
    monkeypatch.setattr(Rehosting, "_earlier", lambda *_asked: None)  # it looked before the first one placed
    assert rehosting.from_url(loopback.url("/b"), NAME, "video") == first
    assert parts_left(rehosting) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<!doctype html><title>expired</title>", "not_media"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "not_media"),
        (media_files.png(4, 4, b""), "wrong_kind"),
    ],
)
def test_what_is_no_video_is_never_stored(
    content: bytes, reason: str, loopback: Loopback, rehosting: Rehosting
) -> None:
    loopback.answers["/clip.mp4"] = body(content, "video/mp4")
    assert rehosting.from_url(loopback.url("/clip.mp4"), NAME, "video") == Invalid(reason)
    assert rehosting.store.find(NAME) is None
    assert parts_left(rehosting) == []


def test_a_refused_and_a_failed_fetch_come_back_as_they_are(loopback: Loopback, rehosting: Rehosting) -> None:
    loopback.answers["/"] = body(b"", status="504 Gateway Timeout")
    failed = rehosting.from_url(loopback.url("/"), NAME, "video")
    assert failed == FetchFailed(Failure.SERVER, retryable=True, status=504)
    assert rehosting.from_url("http://169.254.169.254/", NAME, "video") == FetchRefused(
        Refusal.PRIVATE_ADDRESS
    )


def test_an_output_inside_the_providers_answer_goes_the_same_way(
    rehosting: Rehosting, tmp_path: Path
) -> None:
    picture = media_files.image(tmp_path / "a.png", "PNG").read_bytes()
    outcome = rehosting.from_url(f"data:image/png;base64,{base64.b64encode(picture).decode()}", NAME, "image")
    assert isinstance(outcome, Rehosted)
    assert rehosting.store.path(NAME).read_bytes() == picture


@pytest.mark.parametrize(
    "url", ["data:", "data:image/png,abc", "data:image/png;base64,***", "data:;base64,abc"]
)
def test_a_broken_inline_output_is_refused(url: str, rehosting: Rehosting) -> None:
    assert rehosting.from_url(url, NAME, "image") == FetchRefused(Refusal.BAD_URL)


def test_a_store_that_cannot_be_written_is_our_failure(
    loopback: Loopback, rehosting: Rehosting, mp4: Path, tmp_path: Path
) -> None:
    loopback.answers["/"] = body(mp4.read_bytes())
    in_the_way = tmp_path / "a_file"
    in_the_way.touch()
    broken = dataclasses.replace(rehosting, store=MediaStore(in_the_way))
    assert broken.from_url(loopback.url("/"), NAME, "video") == FetchFailed(Failure.STORAGE, retryable=True)
