"""docs/console-checklist.md names tests of every item of its list; each exists and names its item."""

import re
from pathlib import Path

from django.conf import settings

_ROOT = Path(settings.BASE_DIR)
_PAGE = (_ROOT / "docs" / "console-checklist.md").read_text()
_ROWS = dict(re.findall(r"^\| ([A-Z]\d+) \| (.*) \|$", _PAGE, re.MULTILINE))
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_ITEMS = {"G": 22, "L": 15, "E": 16, "R": 10, "A": 9, "C": 7, "U": 5, "M": 8, "V": 9, "I": 7, "P": 8}
_WITH_BILLS = {"M5", "M6", "M7", "M8"}


def test_every_item_has_a_row() -> None:
    assert set(_ROWS) == {f"{area}{number}" for area, last in _ITEMS.items() for number in range(1, last + 1)}


def test_every_item_is_shown_by_a_test_that_names_it() -> None:
    unshown = {item for item, row in _ROWS.items() if not _TEST.search(row)}
    assert unshown <= _WITH_BILLS
    for item, row in _ROWS.items():
        for path, name in _TEST.findall(row):
            assert f"_{item.lower()}_" in name, (item, name)
            assert f"def {name}(" in (_ROOT / path).read_text(), (item, path, name)
