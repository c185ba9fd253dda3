"""An operator asks the provider what it knows of a submission: it is read, kept in the audit, and decides
nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from catalog.audit import Actor, Change, record
from catalog.providers.registry import adapter_for
from catalog.providers.types import PollFailure, PollResult
from catalog.vault import VaultError
from dispatch.models import Attempt
from dispatch.services.recover import look
from dispatch.transport import transport_to


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """`code` in our words; `status`: the provider's own, where it knows the task; `raw`: its evidence."""

    code: str
    raw: Mapping[str, Any]
    status: str = ""


def query_provider(
    attempt: Attempt, task: str, *, actor: Actor, clock: Callable[[], datetime]
) -> ProviderAnswer:
    """Of one task by its id; without one, of what the account lists under our reference."""
    answer = _of_task(attempt, task) if task else _of_list(attempt, clock())
    told = {"task": task, "answer": answer.code}
    record(actor, Change("query provider", f"attempt:{attempt.public_id}", after=told), clock())
    return answer


def _of_list(attempt: Attempt, now: datetime) -> ProviderAnswer:
    told = look(attempt, now)
    return ProviderAnswer(type(told).__name__.lower(), told.evidence())


def _of_task(attempt: Attempt, task: str) -> ProviderAnswer:
    told = status_of(attempt, task)
    if isinstance(told, PollFailure):
        return ProviderAnswer("not_found" if told.not_found else "no_answer", {"detail": told.detail})
    return ProviderAnswer("status", dict(told.raw), told.raw_status)


def status_of(attempt: Attempt, provider_job_id: str) -> PollResult:
    """What the account of `attempt` says of a task now; nothing is kept."""
    try:
        connection = transport_to(attempt.channel)
    except VaultError as error:
        return PollFailure(False, None, f"the credential can't be opened: {error}")
    with connection as transport:
        return adapter_for(attempt.channel.provider).poll(transport, provider_job_id)
