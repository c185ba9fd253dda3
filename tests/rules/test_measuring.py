"""What a benchmark may and may not conclude."""

import pytest

from tests.benchmarks.measuring import Figures, NoQuietWindow, Plan, Program, Report, Row, interleaved


def row(ours: float, bar: float | None = 0.3, goal: float | None = 0.1) -> Row:
    return Row("a row", Figures.of([ours]), Figures.of([1.0]), bar, goal)


def test_figures_are_least_median_and_most() -> None:
    assert Figures.of([3.0, 1.0, 2.0]) == Figures(1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(0.1, "goal 0.1 met"), (0.3, "first bar 0.3 met"), (0.31, "first bar 0.3 MISSED")],
)
def test_a_ratio_is_judged_by_goal_and_bar(ours: float, verdict: str) -> None:
    assert row(ours).verdict == verdict


def test_one_missed_bar_fails_the_report_and_a_row_without_a_bar_fails_nobody() -> None:
    def passed(*rows: Row) -> bool:
        return Report("b", "r", Plan(), rows, 0).passed

    assert passed(row(0.2), row(5.0, None, None))
    assert not passed(row(0.2), row(0.4))


def test_without_a_quiet_window_there_is_no_result() -> None:
    with (
        Program("tests.benchmarks.routing_product", "10", "decision") as program,
        pytest.raises(NoQuietWindow, match="6 rounds were too noisy"),
    ):
        interleaved({"ours": program}, Plan(windows=2, window_s=0.01, foreign_share=-1))


def test_the_measured_decision_is_whole_and_its_windows_are_counted() -> None:
    with Program("tests.benchmarks.routing_product", "21", "decision and snapshot") as program:
        measured = interleaved({"ours": program}, Plan(windows=2, window_s=0.05, foreign_share=9))
    assert [window.units > 0 and window.wall_s >= 0.05 for window in measured.windows["ours"]] == [True, True]
    assert measured.discarded == 0


def test_a_rate_is_better_the_higher_and_a_figure_without_reference_is_judged_itself() -> None:
    rate = Row("r", Figures.of([30.0]), Figures.of([100.0]), 0.25, 0.5, "jobs/s", more_is_better=True)
    assert (rate.passed, rate.verdict) == (True, "first bar 0.25 met")
    late = Row("l", Figures.of([1.2]), bar=1.1, goal=0.1, unit="s")
    assert (late.ratio, late.passed, late.verdict) == (None, False, "first bar 1.1 MISSED")
