"""Lets open circuits be probed, after the provider's free account check where there is one."""

import logging
from datetime import datetime

from catalog.models import Channel
from catalog.providers.registry import adapter_for
from catalog.vault import VaultError
from dispatch.services.advance import wake_dispatcher
from dispatch.transport import transport_to
from health.services.begin_recoveries import begin_recoveries

logger = logging.getLogger(__name__)


def begin_due_recoveries(now: datetime) -> int:
    """How many circuits changed. Uses the network, so it runs where that may take its time."""
    events = begin_recoveries(now, account_passes)
    if events:
        wake_dispatcher()
    return len(events)


def account_passes(channel_id: int) -> bool:
    """Whether the channel's credential works, as far as can be told without spending."""
    channel = Channel.objects.get(pk=channel_id)
    adapter = adapter_for(channel.provider)
    if not adapter.capabilities.free_account_check:
        return True
    try:
        with transport_to(channel) as transport:
            result = adapter.check(transport)
    except VaultError as error:
        logger.error("A credential can't be opened: %s", error, extra={"channel": channel.slug})  # noqa: TRY400
        return False
    return result.passed
