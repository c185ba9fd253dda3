"""The walls between the packages hold, and would be missed if they did not."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).parents[1]
PACKAGES = ("catalog", "health", "billing", "dispatch", "config")  # an arrow may point only to the left


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_contracts_hold() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


def called_pure() -> Iterator[str]:
    """Modules whose docstring ends a clause with "pure"; one that only speaks of others does not."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            said = ast.get_docstring(ast.parse(path.read_text())) or ""
            if re.search(r"\bpure\b[.;]|^Pure\.", said, re.IGNORECASE | re.MULTILINE):
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_what_calls_itself_pure_is_held_to_it() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    held = settings["importlinter"]["contracts"][1]["source_modules"]
    strict = [name.removesuffix(".*") for name in settings["mypy"]["overrides"][0]["module"]]
    pure = list(called_pure())
    assert len(pure) > 30
    for names in (held, strict):
        assert [
            module for module in pure if not f"{module}.".startswith(tuple(f"{it}." for it in names))
        ] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("catalog/ids.py", "import health.circuit"),
        ("health/circuit.py", "import billing.money"),
        ("billing/money.py", "import dispatch.lifecycle"),
        ("dispatch/lifecycle.py", "import config.env"),
        ("dispatch/retry.py", "import django.conf"),
        ("catalog/providers/types.py", "import catalog.models"),
    ],
)
def test_an_import_the_wrong_way_is_found(module: str, line: str, tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    broken = tmp_path / module
    broken.write_text(f"{broken.read_text()}\n{line}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def test_foreign_keys_point_the_way_imports_do() -> None:
    """A string reference in a foreign key is invisible to an import linter."""
    wrong = [
        f"{model._meta.label}.{field.name} → {field.related_model._meta.label}"
        for model in apps.get_models()
        if model._meta.app_label in PACKAGES
        for field in model._meta.get_fields()
        if field.concrete
        and field.is_relation
        and field.related_model._meta.app_label in PACKAGES
        and PACKAGES.index(field.related_model._meta.app_label) > PACKAGES.index(model._meta.app_label)
    ]
    assert not wrong
