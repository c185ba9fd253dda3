"""An attempt's phases are contiguous, whatever is known of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.queries.timeline import AttemptTimes, Segment, timeline

START = datetime(2026, 11, 30, 11, 41, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


WHOLE = AttemptTimes(
    number=1,
    supply="kestrel-hd",
    state="succeeded",
    waiting_from=START,
    created_at=at(6),
    request_started_at=at(7),
    uncertain_at=at(9),
    accepted_at=at(20),
    generated_at=at(80),
    ended_at=at(86),
)


def test_each_phase_lasts_from_its_beginning_to_the_next() -> None:
    (line,) = timeline(START, [WHOLE], at(200)).lines
    assert [(s.phase, s.start_s, s.seconds) for s in line.segments] == [
        ("queue", 0, 6),
        ("prepare", 6, 1),
        ("submit", 7, 2),
        ("uncertain", 9, 11),
        ("run", 20, 60),
        ("deliver", 80, 6),
    ]
    assert not line.goes_on


def test_an_attempt_that_goes_on_lasts_to_now() -> None:
    running = replace(WHOLE, uncertain_at=None, generated_at=None, ended_at=None)
    (line,) = timeline(START, [running], at(50)).lines
    assert (line.segments[-1].phase, line.segments[-1].end_s, line.goes_on) == ("run", 50, True)


def test_an_attempt_that_was_never_sent_shows_only_what_happened() -> None:
    unsent = AttemptTimes(2, "osprey", "failed", at(86), at(87), ended_at=at(90))
    (line,) = timeline(START, [unsent], at(90)).lines
    assert [s.phase for s in line.segments] == ["queue", "prepare"]


def test_only_phases_that_occur_are_in_the_legend_in_their_order() -> None:
    quick = replace(WHOLE, uncertain_at=None)
    assert timeline(START, [quick], at(90)).phases == ["queue", "prepare", "submit", "run", "deliver"]


@pytest.mark.parametrize("last", [0.2, 1, 59, 61, 180, 3_599, 80_000])
def test_the_axis_ends_at_or_after_the_last_end_and_has_few_ticks(last: float) -> None:
    chart = timeline(START, [AttemptTimes(1, "a", "failed", START, START, ended_at=at(last))], at(last))
    assert chart.axis_s >= last
    assert 2 <= len(chart.ticks) <= 8
    assert chart.ticks[-1] == (chart.axis_s, "100.000%")


@given(st.lists(st.one_of(st.none(), st.floats(0, 10_000)), min_size=6, max_size=6), st.floats(0, 10_000))
def test_r8_segments_are_contiguous_and_inside_the_axis(marks: list[float | None], end: float) -> None:
    created, *rest = marks
    times = [None if each is None else at(each) for each in rest]
    attempt = AttemptTimes(1, "a", "running", START, at(created or 0), *times)
    chart = timeline(START, [attempt], at(end))
    segments = list(chart.lines[0].segments)
    for before, after in pairwise(segments):
        assert after.start_s == pytest.approx(before.end_s)
    assert all(map(_has_length, segments))


def _has_length(segment: Segment) -> bool:
    return segment.seconds > 0 and segment.start_s >= 0
