"""Some lives of the simulation in the suite; `manage.py simulate` runs thousands, and plants every bug."""

import os
from collections.abc import Iterator

import pytest

from tests.simulation.run import Process, Summary, lives, lives_to_find, processes

SEEDS = range(1, 25)


@pytest.fixture(scope="module")
def running() -> Iterator[list[Process]]:
    with processes(2, os.environ["DATABASE_URL"]) as running:
        yield running


def test_whatever_goes_wrong_nothing_is_paid_twice_and_everything_ends(running: list[Process]) -> None:
    summary = Summary()
    for life in lives(running, ({"seed": seed} for seed in SEEDS)):
        summary.add(life)
    assert [(life["seed"], life["findings"]) for life in summary.violations] == []
    assert summary.most_posts == 1
    assert len(summary.faults) > 20


def test_a_life_is_the_same_in_every_line_when_it_is_lived_again(running: list[Process]) -> None:
    first, again = (process.live(seed=26) for process in running)
    assert first["history"] == again["history"]
    assert len(first["history"]) > 20


def test_a_planted_bug_is_found(running: list[Process]) -> None:
    _, life = lives_to_find(running, "try a second supply while the first is unknown", first=1, most=40)
    assert life is not None
    assert any(invariant.startswith(("I3", "I7")) for invariant, _ in life["findings"])
