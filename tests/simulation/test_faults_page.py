"""docs/faults.md names tests and classes of simulated faults; each exists, and no fault is left out."""

import re
from pathlib import Path

from django.conf import settings

from tests.simulation.adversary import FAMILIES

_PAGE = (Path(settings.BASE_DIR) / "docs" / "faults.md").read_text()
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_the_page_names_exists() -> None:
    named = _TEST.findall(_PAGE)
    missing = [
        f"{path}::{name}"
        for path, name in named
        if f"def {name}(" not in (Path(settings.BASE_DIR) / path).read_text()
    ]
    assert len(named) > 50
    assert not missing


def test_every_class_of_simulated_faults_that_the_page_names_is_injected() -> None:
    named = {name for told in re.findall(r"simulated: ([\w, ]+)", _PAGE) for name in told.strip().split(", ")}
    assert named == set(FAMILIES)


def test_each_of_the_fifty_eight_faults_has_a_row() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", _PAGE, re.MULTILINE)]
    assert numbers == list(range(1, 59))
