"""From a channel's row to a connection: opens the credential, sets the limits."""

from django.conf import settings

from catalog.models import Channel
from catalog.providers.http import Transport
from catalog.providers.types import ChannelAccess
from catalog.vault import parse_master_keys, unseal


def credential_row(channel: Channel) -> str:
    """The name under which the channel's credential is sealed."""
    return f"channel:{channel.public_id}:credential"


def access_to(channel: Channel) -> ChannelAccess:
    """Raises VaultError where the credential can't be opened."""
    keys = parse_master_keys(settings.MASTER_KEYS)
    return ChannelAccess(
        slug=channel.slug,
        provider=channel.provider,
        base_url=channel.base_url,
        credential=unseal(channel.credential, credential_row(channel), keys),
        config=channel.config,
    )


def transport_over(access: ChannelAccess) -> Transport:
    return Transport(access)
