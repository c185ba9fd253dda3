"""The nightly proof of the evidence: a sample of the stored rounds is routed again, and any difference
is a critical alert. The day and their ids decide which, so a night can be repeated."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import F

from dispatch.models import SelectionRound
from dispatch.queries.recorded_versions import recorded_documents
from dispatch.routing.replay import replay
from dispatch.routing.snapshot import SCHEMA
from dispatch.services import raise_alerts
from health.models import Alert

logger = logging.getLogger(__name__)

BUCKETS: Final = 10  # each night another tenth of the rounds
TOLD_LENGTH: Final = 300  # characters of one difference
MOST_ROUNDS: Final = 500  # the newest of the tenth


@dataclass(frozen=True, slots=True)
class Audit:
    """`differing` holds the first difference of each round that came out otherwise, by its public id."""

    replayed: int
    skipped: int  # stored in the form of an earlier release, which no replay reads
    differing: dict[str, str]


def audit_replays(now: datetime) -> Audit:
    """Looks at the day's sample, and again at the rounds of the open alert, which ends when all agree."""
    rounds = [*_named_by_the_alert(), *_sample(now)]
    readable = {row.public_id: row for row in rounds if row.snapshot.get("schema") == SCHEMA}
    documents = recorded_documents(*(row.snapshot for row in readable.values()))
    differing = {
        row.public_id: found for row in readable.values() if (found := _first_difference(row, documents))
    }
    skipped = len({row.public_id for row in rounds}) - len(readable)
    audit = Audit(len(readable), skipped, differing)
    if differing:
        raise_alerts.replay_difference(differing, len(readable), now)
    else:
        raise_alerts.replays_agree(now)
    logger.info(
        "Routed stored rounds again: %s of %s differ",
        len(differing),
        len(readable),
        extra={"count": len(differing)},
    )
    return audit


def _sample(now: datetime) -> list[SelectionRound]:
    """Newest first, so that the walk through the ids ends after ten times the bound."""
    bucket = now.date().toordinal() % BUCKETS
    rounds = SelectionRound.objects.alias(bucket=F("pk") % BUCKETS).filter(bucket=bucket)
    return list(rounds.order_by("-pk")[:MOST_ROUNDS])


def _named_by_the_alert() -> list[SelectionRound]:
    alert = Alert.objects.filter(dedupe_key=raise_alerts.REPLAY_DIFFERENCE, resolved_at=None).first()
    return list(SelectionRound.objects.filter(public_id__in=alert.details["rounds"])) if alert else []


def _first_difference(row: SelectionRound, documents: dict[str, object]) -> str:
    try:
        differences = replay(row.snapshot, documents)
    except Exception as error:  # noqa: BLE001 - whatever keeps a round from being routed again is what is looked for
        return f"{type(error).__name__}: {error}"
    return differences[0][:TOLD_LENGTH] if differences else ""
