"""When a capacity group pauses, and how one request finds out whether it may go on."""

from datetime import UTC, datetime, timedelta

import pytest

from health.pressure import PAUSE, PROBE_WINDOW, TOGETHER, Press, Pressure, claimed, pressed, probe_due

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def after(*presses: tuple[int, float], until: datetime | None = None) -> Pressure:
    """Each press is a channel and the second it came at."""
    pressure = Pressure()
    for channel, second in presses:
        pressure = pressed(pressure, Press(later(second), channel), until)
    return pressure


def test_one_channel_alone_says_nothing_about_its_group() -> None:
    assert after((1, 0), (1, 5), (1, 10)).not_before is None


@pytest.mark.parametrize(("second", "not_before"), [(60, later(90)), (60.5, None)])
def test_two_channels_within_a_minute_pause_the_group(second: float, not_before: datetime | None) -> None:
    assert after((1, 0), (2, second)).not_before == not_before


def test_the_group_waits_as_long_as_the_provider_said() -> None:
    assert after((1, 0), (2, 1), until=later(300)).not_before == later(300)


def test_a_pause_is_never_shortened() -> None:
    assert pressed(after((1, 0), (2, 1), until=later(300)), Press(later(2), 1), None).not_before == later(300)


def test_after_the_pause_one_request_probes() -> None:
    paused = after((1, 0), (2, 0))
    assert not probe_due(paused, NOON + PAUSE - timedelta(seconds=1))
    assert probe_due(paused, NOON + PAUSE)
    probed = claimed(paused, NOON + PAUSE)
    assert not probe_due(probed, NOON + PAUSE)
    assert probed.not_before == NOON + PAUSE + PROBE_WINDOW


def test_a_probe_that_meets_a_full_provider_pauses_the_group_again_though_it_is_alone() -> None:
    probed = claimed(after((1, 0), (2, 0)), NOON + TOGETHER * 2)
    again = pressed(probed, Press(NOON + TOGETHER * 2, 1), None)
    assert again.not_before == NOON + TOGETHER * 2 + PAUSE
    assert probe_due(again, NOON + TOGETHER * 2 + PAUSE)


def test_a_probe_that_was_not_refused_within_its_window_frees_the_group() -> None:
    probed = claimed(after((1, 0), (2, 0)), NOON + PAUSE)
    free_at = NOON + PAUSE + PROBE_WINDOW
    assert not probe_due(probed, free_at)
    assert pressed(probed, Press(free_at + TOGETHER, 1), None).not_before == probed.not_before
