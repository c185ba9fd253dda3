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
    numbers = re.findall(r'env\.number\(\s*"([A-Z_]+)",\s*([0-9_]+)', SETTINGS)
    in_code = {f"FRAMEYARD_{name}": int(value) for name, value in numbers}
    assert len(in_code) > 10
    shown = {name: int(value) for name, value in listed().items() if value.isdecimal()}
    assert in_code == {name: value for name, value in shown.items() if name in in_code}
    assert {shown[name] for name in shown.keys() - in_code.keys()} <= {0, 1}, "a yes or a no"
