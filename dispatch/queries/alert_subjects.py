"""What alerts are about beyond the id in their subject: model, supply, channel, job, where they are known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dispatch.models import Attempt
from health.models import Alert

_KINDS: Final = ("model", "supply", "channel")


@dataclass(frozen=True, slots=True)
class About:
    """Slugs, and public ids of job and attempt; "" where it is not known. `subject`: of any other kind."""

    model: str = ""
    supply: str = ""
    channel: str = ""
    job: str = ""
    attempt: str = ""
    subject: str = ""

    @property
    def places(self) -> list[tuple[str, str]]:
        """Each slug with its kind."""
        return [(kind, getattr(self, kind)) for kind in _KINDS if getattr(self, kind)]


def told_by(alert: Alert) -> About:
    """From the alert alone, without a query."""
    kind, _colon, name = alert.subject.partition(":")
    known = {key: str(alert.details.get(key) or "") for key in (*_KINDS, "job", "attempt")}
    if kind in known:
        return About(**known | {kind: name})
    return About(**known, subject=alert.subject)


def about(alerts: Iterable[Alert]) -> Mapping[str, About]:
    """By the alert's public id. One query for all of them, whose attempts say the rest."""
    told = {each.public_id: told_by(each) for each in alerts}
    fields = ("public_id", "job__public_model__slug", "supply__slug", "channel__slug", "job__public_id")
    ids = {each.attempt for each in told.values() if each.attempt}
    rows = Attempt.objects.filter(public_id__in=ids).values_list(*fields)
    attempts = {first: rest for first, *rest in rows}
    return {key: _filled(each, attempts.get(each.attempt)) for key, each in told.items()}


def _filled(told: About, attempt: list[str] | None) -> About:
    if attempt is None:
        return told
    model, supply, channel, job = attempt
    return replace(
        told,
        model=told.model or model,
        supply=told.supply or supply,
        channel=told.channel or channel,
        job=told.job or job,
    )
