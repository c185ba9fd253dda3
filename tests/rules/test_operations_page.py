"""docs/operations.md tells of every command that an installation has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_command_is_told_and_none_that_is_not_there() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    commands = {path.stem for path in ROOT.glob("*/management/commands/[a-z]*.py")}
    table = set(re.findall(r"^\| `(\w+)", page.split("## Commands")[1].split("##")[0], re.MULTILINE))
    assert table <= commands
    assert commands == table | set(re.findall(r"(?:manage\.py|\./run) (\w+)", page)) & commands
