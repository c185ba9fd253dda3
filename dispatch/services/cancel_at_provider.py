"""Asks the provider to cancel, where it can be asked; what it answers is only kept, its end is polled."""

from collections.abc import Callable
from datetime import datetime

from catalog.providers.registry import adapter_for
from catalog.providers.types import CancelResult
from catalog.vault import VaultError
from dispatch.lifecycle import AttemptState
from dispatch.models import Attempt, ProviderEvent
from dispatch.repository import keep_event
from dispatch.transport import transport_to


def cancel_at_provider(attempt_id: int, clock: Callable[[], datetime]) -> None:
    """Safe to repeat: cancelling twice is the same wish."""
    attempt = (
        Attempt.objects.select_related("channel", "provider_job")
        .filter(pk=attempt_id, state=AttemptState.CANCEL_REQUESTED)
        .first()
    )
    if attempt is None:
        return
    result = _ask(attempt)
    keep_event(attempt, ProviderEvent.Kind.CANCEL, result.outcome, dict(result.raw), clock())


def _ask(attempt: Attempt) -> CancelResult:
    try:
        connection = transport_to(attempt.channel)
    except VaultError as error:
        return CancelResult("failed", {"detail": f"the credential can't be opened: {error}"})
    with connection as transport:
        return adapter_for(attempt.channel.provider).cancel(transport, attempt.provider_job.provider_job_id)
