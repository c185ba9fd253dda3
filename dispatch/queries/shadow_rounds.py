"""Recorded rounds that hold a shadow order, with what became of the real choice."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from dispatch.models import SelectionRound
from dispatch.routing.shadow_report import Result, ShadowedRound

_COLUMNS: Final = (
    "created_at",
    "job__public_model__slug",
    "snapshot__policy__currency",
    "snapshot__evidence__shadow",
    "snapshot__evidence__findings",
    "snapshot__decision__candidates",
    "snapshot__supplies",
    "attempt__state",
    "attempt__created_at",
    "attempt__generated_at",
    "attempt__cost_micros",
)


def shadow_rounds(since: datetime) -> Iterator[ShadowedRound]:
    """Of the jobs created after `since`, one query; of each snapshot only the parts that are compared."""
    rows = SelectionRound.objects.filter(
        job__created_at__gt=since, outcome="chosen", snapshot__evidence__has_key="shadow"
    )
    for at, model, currency, shadow, findings, candidates, supplies, *attempt in rows.values_list(
        *_COLUMNS
    ).iterator():
        yield ShadowedRound(
            model=model,
            day=at.astimezone(UTC).date(),
            currency=currency,
            shadow=shadow,
            candidates=candidates,
            findings=findings,
            supplies=supplies,
            result=_result(*attempt),
        )


def _result(
    state: str, selected_at: datetime, generated_at: datetime | None, cost_micros: int | None
) -> Result:
    seconds = None if generated_at is None else (generated_at - selected_at).total_seconds()
    return Result(state, seconds, cost_micros)
