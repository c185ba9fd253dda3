"""An installation is made ready before it serves, and again after each upgrade."""

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import call_command

from config.installation import DEMO_PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _static_files_apart(settings: LazySettings, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path


def test_without_a_password_it_adds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEMO_PASSWORD, raising=False)
    call_command("prepare", verbosity=0)
    assert not User.objects.exists()


def test_the_first_operator_gets_the_password_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for password in ("the first long password", "another long password"):
        monkeypatch.setenv(DEMO_PASSWORD, password)
        call_command("prepare", verbosity=0)
    assert User.objects.get().check_password("the first long password")
