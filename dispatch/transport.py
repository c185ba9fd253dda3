"""From a channel's row to a connection: opens the credential, sets the limits."""

from django.conf import settings

from catalog.callback_addresses import callback_secrets, callback_url
from catalog.credentials import read_credential
from catalog.models import Channel
from catalog.providers.http import Limits, Transport
from catalog.providers.types import ChannelAccess

_SHORTEST_CALL_S = 1.0


def access_to(channel: Channel) -> ChannelAccess:
    """Raises VaultError where the credential can't be opened."""
    return ChannelAccess(
        slug=channel.slug,
        provider=channel.provider,
        base_url=channel.base_url,
        credential=read_credential(channel),
        config=channel.config,
        callback_url=callback_url(channel),
        callback_secrets=callback_secrets(channel),
    )


def transport_over(access: ChannelAccess) -> Transport:
    """For look-ups, which are short, repeated, and made by many at once."""
    return Transport(
        access,
        Limits(
            connect_timeout_s=settings.PROVIDER_CONNECT_TIMEOUT_S,
            read_timeout_s=settings.POLL_DEADLINE_S,
            deadline_s=settings.POLL_DEADLINE_S,
        ),
    )


def transport_to(channel: Channel) -> Transport:
    return transport_over(access_to(channel))


def transport_for_sending(access: ChannelAccess, within_s: float | None = None) -> Transport:
    """For submissions: patient, since giving up early leaves an outcome that nobody knows.

    `within_s`: what is left for a call whose answer is the result itself, and therefore comes late."""
    deadline_s, read_timeout_s = float(settings.PROVIDER_DEADLINE_S), float(settings.PROVIDER_READ_TIMEOUT_S)
    if within_s is not None:
        deadline_s = read_timeout_s = max(_SHORTEST_CALL_S, min(deadline_s, within_s))
    return Transport(
        access,
        Limits(
            connect_timeout_s=min(settings.PROVIDER_CONNECT_TIMEOUT_S, deadline_s),
            read_timeout_s=read_timeout_s,
            deadline_s=deadline_s,
        ),
    )
