"""Reading what providers send: documents, lists, waiting times; and what of it may be kept."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.providers.documents import Unreadable, address, name, number, progress, read_document, words
from catalog.providers.http import Answer
from catalog.providers.listing import Page, Row, Unlisted, look_up
from catalog.providers.redaction import redacted
from catalog.providers.types import Absent, CannotTell, Found, RecoverResult, Window
from catalog.providers.verdict import retry_after_s
from tests.factories import NOW

WINDOW = Window(NOW - timedelta(seconds=60), NOW + timedelta(seconds=60))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"<html></html>",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": "\xff"}',
        b'{"a": 1, "a": 2}',
        b'{"b": {"a": 1, "a": 2}}',
        b'{"a": ' + b"9" * 5_000 + b"}",
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"[" * 200_000,
        "{}".encode("utf-16"),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_json_object_is_unreadable_and_no_crash(body: bytes) -> None:
    assert isinstance(read_document(body), Unreadable)


def test_a_json_object_is_read() -> None:
    assert read_document(b'{"a": {"b": [1, 2.5, null, "\xe7\x81\xaf"]}}') == {
        "a": {"b": [1, 2.5, None, "灯"]}
    }


@pytest.mark.parametrize(
    ("written", "done"),
    [
        (0, 0),
        (0.37, 0.37),
        (37, 0.37),
        ("37%", 0.37),
        (" 37 % ", 0.37),
        ("0.37", 0.37),
        (100, 1),
        (101, 1),
        ("100%", 1),
        (1, 1),
        (None, None),
        (-1, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        ("half", None),
        ([], None),
    ],
)
def test_progress_is_read_however_it_is_written(written: Any, done: float | None) -> None:
    assert progress(written) == (None if done is None else pytest.approx(done))


@pytest.mark.parametrize("value", [None, "", " ", "a b", "a\nb", "x" * 201, 7, [], {}, True, "\0", "任务"])
def test_what_can_not_be_an_id_is_none(value: Any) -> None:
    assert name(value) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "file:///etc/passwd",
        "ftp://host/x",
        "//host/x",
        7,
        "https://" + "x" * 4000,
        "https://h/\0",
        "https://h/\ud800",
    ],
)
def test_what_can_not_be_an_address_is_none(value: Any) -> None:
    assert address(value) is None


@pytest.mark.parametrize(
    "value", [None, True, "1", -1, float("nan"), float("inf"), 1e16, [], 10**20, 10**400]
)
def test_what_can_not_be_a_count_is_none(value: Any) -> None:
    assert number(value) is None


@pytest.mark.parametrize("word", ["IN PROGRESS", " in_progress ", "In-Progress", "in  progress\n"])
def test_a_word_is_one_word_however_it_is_spelt(word: str) -> None:
    assert words(word) == "in_progress"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30", 30),
        (" 30 ", 30),
        ("999999999", 24 * 3600),
        ("Mon, 30 Nov 2026 12:00:45 GMT", 45),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("9" * 400, 24 * 3600),
    ],
)
def test_retry_after_is_seconds_or_a_date_counted_from_the_answers_own(
    written: str, seconds: float | None
) -> None:
    headers = {"retry-after": written, "date": "Mon, 30 Nov 2026 12:00:00 GMT"}
    assert retry_after_s(Answer(429, headers, b"")) == seconds


def test_prompts_secrets_and_signatures_are_not_kept() -> None:
    document = {
        "prompt": "a lighthouse",
        "Revised_Prompt": "a lighthouse",
        "api_key": "sk-1",
        "url": "https://user:pass@host.example/a.mp4?signature=abc#part",
        "message": "key sk-canary is invalid",
        "items": [{"text": "a lighthouse", "b64_json": "AAAA"}],
        "prompt_tokens": 7,
        "status": "running",
    }
    assert redacted(document, ("sk-canary",)) == {
        "prompt": "…",
        "Revised_Prompt": "…",
        "api_key": "…",
        "url": "https://host.example/a.mp4?…",
        "message": "key … is invalid",
        "items": [{"text": "…", "b64_json": "…"}],
        "prompt_tokens": 7,
        "status": "running",
    }


def test_what_is_kept_is_bounded_and_can_be_stored() -> None:
    deep: Any = "bottom"
    for _ in range(500):
        deep = {"a": deep, "b": [deep]} if isinstance(deep, str) else {"a": deep}
    awkward = {
        "deep": deep,
        "many": list(range(10_000)),
        "long": "x" * 100_000,
        "nul": "a\0b",
        "surrogate": "a\ud800b",
        "odd": float("inf"),
        "not_json": datetime(2026, 11, 30, tzinfo=UTC),
    }
    text = json.dumps(redacted(awkward), allow_nan=False)
    assert len(text) < 5_000
    assert "\\u0000" not in text
    assert "\\ud800" not in text


def rows(*references: str | None, at: datetime = NOW, step_s: float = -1) -> tuple[Row, ...]:
    return tuple(
        Row(f"job-{reference}-{index}", reference, at + timedelta(seconds=step_s * index), "queued")
        for index, reference in enumerate(references)
    )


def look(*pages: Page | Unlisted) -> tuple[RecoverResult, int]:
    read: list[int] = []

    def page(number: int) -> Page | Unlisted:
        read.append(number)
        return pages[number - 1] if number <= len(pages) else Page((), pages[0].total if pages else 0)  # type: ignore[union-attr]

    return look_up("ours", WINDOW, page), len(read)


def test_our_reference_is_found_wherever_it_stands() -> None:
    result, read = look(Page(rows("a", "b"), 4), Page(rows("c", "ours"), 4))
    assert isinstance(result, Found)
    assert (result.provider_job_id, result.raw_status, read) == ("job-ours-1", "queued", 2)


def test_a_whole_list_without_our_reference_is_absence() -> None:
    assert look(Page(rows("a", "b"), 4), Page(rows("c", "d"), 4)) == (
        Absent(4, "a complete list without our reference"),
        2,
    )
    assert isinstance(look(Page((), 0))[0], Absent)


def test_a_list_that_does_not_count_ends_with_an_empty_page() -> None:
    assert look(Page(rows("a", "b")), Page(rows("c"))) == (
        Absent(3, "a complete list without our reference"),
        3,
    )


def test_a_list_that_ends_before_its_total_proves_nothing() -> None:
    assert isinstance(look(Page(rows("a", "b"), 4), Page(rows("c"), 4))[0], CannotTell)


def test_rows_that_come_twice_while_pages_shift_are_counted_once() -> None:
    first, second = Page(rows("a", "b"), 3), Page(rows("a", "b"), 3)
    assert isinstance(look(first, second)[0], CannotTell)


def test_a_page_that_could_not_be_read_proves_nothing() -> None:
    assert look(Page(rows("a", "b"), 4), Unlisted("status 500")) == (CannotTell("status 500"), 2)


def test_a_list_newest_first_is_read_no_further_than_the_window() -> None:
    older = rows("c", "d", at=NOW - timedelta(minutes=5))
    assert look(Page(rows("a", "b"), 900), Page(older, 900))[1] == 2


def test_a_list_oldest_first_is_read_to_its_end() -> None:
    pages = [Page(rows("a", "b", at=NOW - timedelta(minutes=5), step_s=1), 4), Page(rows("c", "ours"), 4)]
    result, read = look(*pages)
    assert isinstance(result, Found)
    assert read == 2


def test_a_list_in_no_order_is_read_to_its_end() -> None:
    old, new = NOW - timedelta(minutes=5), NOW
    mixed = Page((Row("1", "a", new), Row("2", "b", old), Row("3", "c", new), Row("4", "d", old)), 6)
    assert look(mixed, Page(rows("e", "ours"), 6))[1] == 2


def test_one_old_row_shows_no_order() -> None:
    assert look(Page(rows("a", at=NOW - timedelta(minutes=5)), 2), Page(rows("ours"), 2))[1] == 2


@pytest.mark.parametrize("created_at", [NOW, None, NOW - timedelta(seconds=60), NOW + timedelta(hours=1)])
def test_a_job_of_that_time_without_a_reference_may_be_ours(created_at: datetime | None) -> None:
    assert isinstance(look(Page((Row("1", None, created_at),), 1))[0], CannotTell)


def test_a_job_of_an_earlier_time_without_a_reference_is_not_ours() -> None:
    assert isinstance(look(Page((Row("1", None, NOW - timedelta(seconds=61)),), 1))[0], Absent)


@pytest.mark.parametrize(
    ("theirs_s", "made_s", "result"),
    [
        (-3_600, -3_600, CannotTell),  # of ours by an hour: what they made then may be ours
        (-3_600, -3_721, Absent),
        (0, -61, CannotTell),
        (3_600, -61, Absent),  # theirs is ahead, which makes the window longer by itself
        (-10 * 365 * 86_400, -90_000, Absent),  # such a clock says nothing
    ],
)
def test_a_clock_of_ours_that_is_ahead_makes_the_window_begin_so_much_earlier(
    theirs_s: int, made_s: int, result: type[RecoverResult]
) -> None:
    answered, made = NOW + timedelta(seconds=theirs_s), NOW + timedelta(seconds=made_s)
    assert isinstance(look(Page((Row("1", None, made),), 1, answered))[0], result)


def test_a_list_without_an_end_is_given_up() -> None:
    result = look_up("ours", WINDOW, lambda page: Page(rows(f"a{page}", f"b{page}"), None))
    assert isinstance(result, CannotTell)
