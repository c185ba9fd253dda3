"""Serving parts of a file, as players and download tools ask for them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.outputs import ranges
from dispatch.outputs.ranges import FilePart, answer_range, file_headers

ETAG = '"abc"'


@pytest.mark.parametrize(
    ("asked", "start", "length", "said"),
    [
        ("bytes=0-0", 0, 1, "bytes 0-0/1000"),
        ("bytes=0-499", 0, 500, "bytes 0-499/1000"),
        ("bytes=500-", 500, 500, "bytes 500-999/1000"),
        ("bytes=999-", 999, 1, "bytes 999-999/1000"),
        ("bytes=-1", 999, 1, "bytes 999-999/1000"),
        ("bytes=-5000", 0, 1000, "bytes 0-999/1000"),
        ("bytes=900-5000", 900, 100, "bytes 900-999/1000"),
        ("Bytes = 10 - 19 ", 10, 10, "bytes 10-19/1000"),
    ],
)
def test_a_single_range_is_answered_in_part(asked: str, start: int, length: int, said: str) -> None:
    answer = answer_range(asked, 1000, ETAG)
    assert (answer.status, answer.start, answer.length) == (206, start, length)
    assert answer.headers["Content-Range"] == said
    assert answer.headers["Content-Length"] == str(length)
    assert answer.headers["ETag"] == ETAG


@pytest.mark.parametrize(
    "asked", ["bytes=1000-", "bytes=1000-2000", "bytes=-0", "bytes=9999999999999999999-"]
)
def test_a_range_beyond_the_end_is_refused_with_the_size(asked: str) -> None:
    answer = answer_range(asked, 1000, ETAG)
    assert (answer.status, answer.length) == (416, 0)
    assert answer.headers["Content-Range"] == "bytes */1000"
    assert answer.headers["Content-Length"] == "0"


@pytest.mark.parametrize(
    "asked",
    [
        *(None, "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "bytes=--5", "bytes=1-2-3"),
        *("items=0-1", "bytes=0-1,5-6", "bytes=0-,0-,0-,0-", "bytes=٣-٤", "bytes=" + "9" * 30 + "-"),
        *("bytes=0x1-0x2", "bytes=+1-2"),
    ],
)
def test_several_ranges_and_words_we_do_not_know_get_the_whole_file(asked: str | None) -> None:
    answer = answer_range(asked, 1000, ETAG)
    assert (answer.status, answer.start, answer.length) == (200, 0, 1000)
    assert answer.headers["Content-Length"] == "1000"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert "Content-Range" not in answer.headers


def test_a_part_of_another_version_is_never_mixed_in() -> None:
    assert answer_range("bytes=5-", 1000, ETAG, if_range='"abc"').status == 206
    assert answer_range("bytes=5-", 1000, ETAG, if_range='"old"').status == 200
    assert answer_range("bytes=5-", 1000, ETAG, if_range='W/"abc"').status == 200
    assert answer_range("bytes=5-", 1000, ETAG, if_range="Wed, 21 Oct 2026 07:28:00 GMT").status == 200


@given(st.integers(1, 10**12), st.integers(0, 10**13), st.integers(0, 10**13) | st.none())
def test_a_part_always_lies_within_the_file(size: int, first: int, last: int | None) -> None:
    answer = answer_range(f"bytes={first}-{'' if last is None else last}", size, ETAG)
    assert 0 <= answer.start <= answer.start + answer.length <= size
    assert (answer.status == 416) == (first >= size and (last is None or last >= first))


@given(st.text(max_size=40))
def test_any_header_is_answered(header: str) -> None:
    assert answer_range(f"bytes={header}", 100, ETAG).status in (200, 206, 416)


def test_a_part_of_a_file_comes_in_chunks_and_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "CHUNK_BYTES", 4)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789abcdef")
    part = FilePart(path, 3, 10)
    assert list(part) == [b"3456", b"789a", b"bc"]
    part.close()


def test_a_player_that_hangs_up_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    part = FilePart(path, 0, 10)
    part.close()
    with pytest.raises(ValueError, match="closed"):
        next(iter(part))


def test_a_missing_file_is_an_error_before_the_answer_begins(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FilePart(tmp_path / "gone", 0, 10)


def test_a_file_that_lost_its_end_breaks_the_answer_instead_of_shortening_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123")
    part = FilePart(path, 0, 10)
    with pytest.raises(OSError, match="shorter than recorded"):
        list(part)
    part.close()


def test_foreign_bytes_are_served_as_their_proved_type_without_power_over_our_pages() -> None:
    headers = file_headers("video/mp4", "job_01abc-1")
    assert headers["Content-Type"] == "video/mp4"
    assert headers["Content-Disposition"] == 'inline; filename="job_01abc-1.mp4"'
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("content_type", ["text/html", "image/svg+xml", "application/javascript", ""])
def test_a_type_that_is_not_on_our_list_is_only_ever_bytes(content_type: str) -> None:
    assert file_headers(content_type, 'a"\r\nSet-Cookie: b')["Content-Type"] == "application/octet-stream"
    assert file_headers(content_type, 'a"\r\nSet-Cookie: b')["Content-Disposition"].endswith(
        '"aSet-Cookieb.bin"'
    )
