"""From a channel's row to a connection: opens the credential, sets the limits."""

from django.conf import settings

from catalog.credentials import read_credential
from catalog.models import Channel
from catalog.providers.http import Limits, Transport
from catalog.providers.types import ChannelAccess


def access_to(channel: Channel) -> ChannelAccess:
    """Raises VaultError where the credential can't be opened."""
    return ChannelAccess(
        slug=channel.slug,
        provider=channel.provider,
        base_url=channel.base_url,
        credential=read_credential(channel),
        config=channel.config,
    )


def transport_over(access: ChannelAccess) -> Transport:
    return Transport(
        access,
        Limits(
            connect_timeout_s=settings.PROVIDER_CONNECT_TIMEOUT_S,
            read_timeout_s=settings.PROVIDER_READ_TIMEOUT_S,
            deadline_s=settings.PROVIDER_DEADLINE_S,
        ),
    )


def transport_to(channel: Channel) -> Transport:
    return transport_over(access_to(channel))
