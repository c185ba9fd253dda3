"""An installation is made ready before it serves, and again after each upgrade."""

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from catalog.credentials import Credential, store_credential
from config.installation import DEMO_PASSWORD
from tests.factories.catalogue import ChannelFactory

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


def test_one_credential_that_does_not_open_is_told_and_keeps_nobody_from_the_console(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DEMO_PASSWORD, "the first long password")
    sound, broken = ChannelFactory(), ChannelFactory(credential='{"key": "lost"}')
    store_credential(sound, Credential("a secret that opens"))
    sound.save()
    call_command("prepare", verbosity=0)
    told = capsys.readouterr().err
    assert f"channel:{broken.public_id}:credential holds no sealed secret" in told
    assert sound.public_id not in told
    assert User.objects.exists()


def test_master_keys_that_open_no_credential_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_PASSWORD, "the first long password")
    ChannelFactory.create_batch(2, credential='{"key": "lost"}')
    with pytest.raises(CommandError, match="No credential can be opened"):
        call_command("prepare", verbosity=0)
    assert not User.objects.exists()
