"""A job as it is stored, for those who want the whole of it: without the customer's words or secrets."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db.models import Model

from catalog.providers.redaction import redacted
from dispatch.models import ProviderJob
from dispatch.queries.job_story import JobStory

# What the customer wrote or gave, what is a row's own number, and what stands on the page as a whole.
_LEFT_OUT: Final = frozenset(
    {"id", "request", "metadata", "first_answer", "compile_plan", "sent_request", "model_choice", "outputs"}
)


def record_of(story: JobStory) -> Mapping[str, Any]:
    """The job with its attempts; references are public ids where the page has them."""
    job = story.job
    told = _plain(job) | {"customer": job.customer.public_id, "public_model": job.public_model.slug}
    told["attempts"] = [_attempt(attempt) for attempt in story.attempts]
    cleaned: Mapping[str, Any] = redacted(told)
    return cleaned


def _attempt(attempt: Any) -> dict[str, Any]:
    task = _task(attempt)
    return _plain(attempt) | {
        "supply": attempt.supply.slug,
        "channel": attempt.channel.slug,
        "provider_job": _plain(task) if task else None,
    }


def _task(attempt: Any) -> ProviderJob | None:
    return getattr(attempt, "provider_job", None)


def _plain(row: Model) -> dict[str, Any]:
    """Its own columns; foreign keys are left to who knows their names."""
    fields = (each for each in row._meta.concrete_fields if not each.is_relation)
    return {each.name: _written(getattr(row, each.name)) for each in fields if each.name not in _LEFT_OUT}


def _written(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
