"""The pulse's beat: a tick at each whole second from the first, whatever each one took."""

from config.leadership import Seconds


class Clock:
    """Seconds since some moment, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def ticks(clock: Clock, work_s: list[float], late_s: float = 0) -> list[float]:
    """When each tick came, if every sleep lasted `late_s` too long and each tick's work took so long."""
    seconds, at = Seconds(clock=clock), []
    for work in work_s:
        clock.now_s += seconds.until_next_s() + late_s
        at.append(round(clock.now_s, 6))
        clock.now_s += work
    return at


def test_work_between_two_ticks_does_not_move_the_next() -> None:
    assert ticks(Clock(), [0.3, 0.9, 0.0, 0.5]) == [101, 102, 103, 104]


def test_a_sleep_that_lasts_too_long_adds_no_drift() -> None:
    assert ticks(Clock(), [0] * 50, late_s=0.02) == [round(101 + n + 0.02, 6) for n in range(50)]


def test_ticks_that_were_slept_through_are_left_out_and_the_beat_is_kept() -> None:
    assert ticks(Clock(), [0.1, 3.5, 0.1]) == [101, 102, 106]


def test_being_asked_early_does_not_skip_a_tick() -> None:
    clock = Clock()
    seconds = Seconds(clock=clock)
    clock.now_s += seconds.until_next_s() - 0.4  # a signal woke us
    assert round(seconds.until_next_s(), 6) == 0.4
