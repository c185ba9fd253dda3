"""A master key is replaced without losing a credential."""

import base64

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from catalog.credentials import Credential, read_credential, store_credential
from catalog.models import Channel
from tests.factories import ChannelFactory

NEW = "new:" + base64.b64encode(b"n" * 32).decode()

pytestmark = pytest.mark.django_db


def channel_with(secret: str) -> Channel:
    channel = ChannelFactory()
    store_credential(channel, Credential(secret))
    channel.save()
    return channel


def test_after_resealing_the_old_key_may_go(settings: Settings) -> None:
    channel = channel_with("sk-the-secret")
    settings.MASTER_KEYS = [NEW, *settings.MASTER_KEYS]
    call_command("reseal_credentials")
    settings.MASTER_KEYS = [NEW]
    channel.refresh_from_db()
    assert read_credential(channel) == "sk-the-secret"


def test_with_the_old_key_already_gone_nothing_is_changed(settings: Settings) -> None:
    channel = channel_with("sk-the-secret")
    settings.MASTER_KEYS = [NEW]
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("reseal_credentials")
    assert Channel.objects.get(pk=channel.pk).credential == channel.credential


def test_a_channel_whose_stored_text_was_never_sealed_is_named_and_nothing_is_changed(
    settings: Settings,
) -> None:
    sound, broken = channel_with("sk-the-secret"), ChannelFactory(credential="sk-never-sealed")
    settings.MASTER_KEYS = [NEW, *settings.MASTER_KEYS]
    with pytest.raises(CommandError, match=f"Nothing was changed: channel:{broken.public_id}:credential"):
        call_command("reseal_credentials")
    assert Channel.objects.get(pk=sound.pk).credential == sound.credential
