"""`.env.example` is the list of settings: complete, and true about the defaults it states."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = (ROOT / ".env.example").read_text()
SETTINGS = (ROOT / "config" / "settings.py").read_text()
READ_ELSEWHERE = {"FRAMEYARD_POSTGRES_BIN"}  # by config/binaries.py, before there are settings


def read_by_settings() -> set[str]:
    return {f"FRAMEYARD_{name}" for name in re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS)}


def listed() -> dict[str, str]:
    return dict(re.findall(r"^#?(FRAMEYARD_[A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_it_lists_every_setting_and_no_other() -> None:
    assert listed().keys() == read_by_settings() | READ_ELSEWHERE


def test_the_numbers_it_shows_are_the_defaults() -> None:
    in_code = re.findall(r'env\.number\(\s*"([A-Z_]+)",\s*([0-9_]+)', SETTINGS)
    assert len(in_code) > 10
    assert {f"FRAMEYARD_{name}": int(value) for name, value in in_code} == {
        name: int(value) for name, value in listed().items() if value.isdecimal() and value not in ("0", "1")
    }
