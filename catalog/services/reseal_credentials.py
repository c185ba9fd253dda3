"""Puts every stored credential under the current master key, so that an older key can be taken away."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.credentials import reseal_credential
from catalog.models import Channel


def reseal_credentials(*, actor: Actor, now: datetime) -> int:
    """How many were resealed. Raises VaultError, changing nothing, where one can't be opened."""
    with transaction.atomic():
        channels = Channel.objects.select_for_update().exclude(credential="").order_by("pk")
        resealed = [channel for channel in channels if reseal_credential(channel)]
        Channel.objects.bulk_update(resealed, ["credential"])
        for channel in resealed:
            subject = f"channel:{channel.public_id}"
            record(actor, Change("reseal credential", subject), now)
    return len(resealed)
