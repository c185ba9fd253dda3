"""What a file really is: real media of every kind we take, and files that only pretend."""

import dataclasses
import zlib
from pathlib import Path

import pytest

from dispatch.outputs import media, verifiers
from dispatch.outputs.limits import MediaLimits
from dispatch.outputs.media import Invalid, Verified, sniff, verify
from tests.dispatch.outputs import media_files

LIMITS = MediaLimits()


@pytest.mark.parametrize(
    ("codec", "container", "content_type"),
    [
        ("libx264", "mp4", "video/mp4"),
        ("mpeg4", "mp4", "video/mp4"),
        ("libvpx-vp9", "webm", "video/webm"),
        ("libx264", "mov", "video/quicktime"),
        ("libx264", "matroska", "video/x-matroska"),
    ],
)
def test_a_video_is_measured_by_its_frames_whatever_its_name(
    codec: str, container: str, content_type: str, tmp_path: Path
) -> None:
    path = media_files.video(tmp_path / "no_ending", codec=codec, container=container)
    found = verify(path, "video", LIMITS)
    assert isinstance(found, Verified)
    assert (found.content_type, found.width, found.height) == (content_type, 160, 96)
    assert found.duration_ms == pytest.approx(2000, abs=20)
    assert not found.has_audio


def test_a_video_with_sound_says_so(tmp_path: Path) -> None:
    found = verify(media_files.video(tmp_path / "a", audio=True), "video", LIMITS)
    assert isinstance(found, Verified)
    assert found.has_audio


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_is_measured_and_typed(form: str, tmp_path: Path) -> None:
    found = verify(media_files.image(tmp_path / "a", form), "image", LIMITS)
    assert found == Verified("image", f"image/{form.lower()}", 64, 48, None, has_audio=False)


@pytest.mark.parametrize(
    ("codec", "container", "layout_format", "content_type"),
    [
        ("libmp3lame", "mp3", "fltp", "audio/mpeg"),
        ("pcm_s16le", "wav", "s16", "audio/wav"),
        ("aac", "ipod", "fltp", "audio/mp4"),
    ],
)
def test_a_sound_is_measured_and_typed(
    codec: str, container: str, layout_format: str, content_type: str, tmp_path: Path
) -> None:
    found = verify(media_files.sound(tmp_path / "a", codec, container, layout_format), "audio", LIMITS)
    assert isinstance(found, Verified)
    assert (found.content_type, found.width, found.has_audio) == (content_type, None, True)
    assert found.duration_ms == pytest.approx(50 * 1024 / 48, abs=60)


def test_a_medium_of_another_kind_than_promised_is_refused(mp4: Path, tmp_path: Path) -> None:
    assert verify(mp4, "image", LIMITS) == Invalid("wrong_kind")
    assert verify(media_files.image(tmp_path / "a", "PNG"), "video", LIMITS) == Invalid("wrong_kind")


@pytest.mark.parametrize(
    "content",
    [
        media_files.playlist("file:///etc/passwd"),
        media_files.playlist("http://127.0.0.1:1/latest/meta-data/"),
        b"ffconcat version 1.0\nfile '/etc/passwd'\n",
        b"subfile,,start,0,end,100,,:/etc/passwd",
        b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
        b"<?xml version='1.0'?><MPD><BaseURL>http://127.0.0.1/</BaseURL></MPD>",
        b"<!doctype html><title>502 Bad Gateway</title>",
        b'{"error": {"code": "expired"}}',
        b"<!--" + b"\x00\x00\x00\x20ftypisom" + bytes(200) + b"--><script>alert(1)</script>",
        media_files.archive(),
        zlib.compress(bytes(1000)),
        b"\x1f\x8b\x08\x00" + bytes(100),
        b"%PDF-1.7\n",
        b"\x7fELF" + bytes(60),
        b"\x00\x00\x00\x18ftypheic" + bytes(50),
        bytes(100),
        b"\x00",
    ],
)
def test_what_does_not_begin_like_a_medium_of_ours_never_reaches_a_parser(
    content: bytes, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_order: object) -> None:
        raise AssertionError("a parser was started")

    monkeypatch.setattr(verifiers, "examine", no_process)
    written.write_bytes(content)
    assert verify(written, "video", LIMITS) == Invalid("not_media")
    assert sniff(content[: media.HEAD_BYTES]) is None


def test_an_empty_file_is_refused(written: Path) -> None:
    written.touch()
    assert verify(written, "video", LIMITS) == Invalid("empty")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41" + bytes(4096), "video"),
        (b"\x1aE\xdf\xa3\x9f\x42\x82\x84webm" + bytes(500), "video"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt " + bytes(100), "audio"),
        (b"GIF89a/*" + b"*/=1;alert(document.domain)//" + bytes(100), "image"),
        (b"\xff\xd8\xff\xe0" + bytes(500), "image"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(100), "image"),
        (media_files.png(10, 10, b"not compressed at all"), "image"),
        (media_files.png(3000, 3000, zlib.compress(bytes(100))), "image"),
        (media_files.text_bomb(), "image"),
    ],
)
def test_the_right_first_bytes_before_rubbish_are_not_enough(
    content: bytes, kind: str, written: Path
) -> None:
    written.write_bytes(content)
    found = verify(written, kind, LIMITS)
    assert isinstance(found, Invalid)
    assert found.reason in ("undecodable", "truncated", "trailing_data")


def test_a_mp4_with_a_playlist_behind_its_first_box_opens_no_file(written: Path) -> None:
    written.write_bytes(
        b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41" + media_files.playlist("file:///etc/passwd")
    )
    assert isinstance(verify(written, "video", LIMITS), Invalid)


@pytest.mark.parametrize("glued", [media_files.archive(), b"<script>alert(1)</script>" * 10])
def test_a_file_that_is_two_things_at_once_is_refused(
    glued: bytes, mp4: Path, tmp_path: Path, written: Path
) -> None:
    written.write_bytes(mp4.read_bytes() + glued)
    assert verify(written, "video", LIMITS) in (Invalid("trailing_data"), Invalid("truncated"))
    written.write_bytes(media_files.image(tmp_path / "a", "PNG").read_bytes() + glued)
    assert verify(written, "image", LIMITS) == Invalid("trailing_data")


def test_quicktimes_closing_zeros_are_no_second_thing(mp4: Path, written: Path) -> None:
    written.write_bytes(mp4.read_bytes() + bytes(4))
    assert isinstance(verify(written, "video", LIMITS), Verified)


@pytest.mark.parametrize(
    ("container", "kept_share"), [("mp4", 0.2), ("mp4", 0.6), ("mp4", 0.99), ("webm", 0.2), ("webm", 0.6)]
)
def test_a_video_that_was_cut_off_is_refused_even_if_its_first_frames_decode(
    container: str, kept_share: float, tmp_path: Path, written: Path
) -> None:
    codec = "libx264" if container == "mp4" else "libvpx"
    whole = media_files.video(tmp_path / "a", codec=codec, container=container, faststart=container == "mp4")
    content = whole.read_bytes()
    written.write_bytes(content[: int(len(content) * kept_share)])
    assert verify(written, "video", LIMITS) == Invalid("truncated")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_that_was_cut_off_is_refused(form: str, tmp_path: Path, written: Path) -> None:
    content = media_files.image(tmp_path / "a", form).read_bytes()
    written.write_bytes(content[: len(content) // 2])
    assert isinstance(verify(written, "image", LIMITS), Invalid)


@pytest.mark.parametrize("side", [12_000, 30_000, 2**31 - 1])
def test_a_flood_of_pixels_is_refused_by_its_header(side: int, written: Path) -> None:
    written.write_bytes(media_files.png(side, side, zlib.compress(bytes(1000))))
    assert verify(written, "image", LIMITS) == Invalid("too_many_pixels")


def test_a_video_with_too_many_pixels_is_refused(mp4: Path) -> None:
    assert verify(mp4, "video", dataclasses.replace(LIMITS, max_pixels=160 * 96)) != Invalid(
        "too_many_pixels"
    )
    assert verify(mp4, "video", dataclasses.replace(LIMITS, max_pixels=160 * 96 - 1)) == Invalid(
        "too_many_pixels"
    )


def test_a_video_that_is_too_long_is_refused(mp4: Path) -> None:
    assert verify(mp4, "video", dataclasses.replace(LIMITS, max_duration_ms=1000)) == Invalid("too_long")


def test_a_length_is_measured_and_not_believed(mp4: Path, written: Path) -> None:
    content = bytearray(mp4.read_bytes())
    duration_at = content.index(b"mvhd") + 20
    content[duration_at : duration_at + 4] = (100_000).to_bytes(4, "big")  # 100 s at its scale of 1000
    written.write_bytes(content)
    found = verify(written, "video", LIMITS)
    assert isinstance(found, Verified)
    assert found.duration_ms == pytest.approx(2000, abs=20)


def test_a_parser_that_needs_too_much_memory_ends_alone(written: Path) -> None:
    written.write_bytes(media_files.png(9000, 9000, zlib.compress(bytes(9000 * 27_001), 1)))
    assert isinstance(
        verify(written, "image", dataclasses.replace(LIMITS, memory_bytes=200 * 2**20)), Invalid
    )


def test_a_parser_that_takes_too_long_is_killed_and_the_next_file_is_decoded(
    mp4: Path, written: Path
) -> None:
    _write_many_boxes(written)
    assert verify(written, "video", dataclasses.replace(LIMITS, wall_s=0.2)) == Invalid("verifier_timeout")
    assert isinstance(verify(mp4, "video", LIMITS), Verified)


def test_a_parser_that_burns_its_processor_time_is_killed(written: Path) -> None:
    _write_many_boxes(written)
    assert verify(written, "video", dataclasses.replace(LIMITS, cpu_s=1)) == Invalid("verifier_killed")


def _write_many_boxes(path: Path) -> None:
    boxes = b"\x00\x00\x00\x08free" * 4_000_000
    path.write_bytes(b"\x00\x00\x00\x10ftypisom\x00\x00\x00\x00" + boxes)
