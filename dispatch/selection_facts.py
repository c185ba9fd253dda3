"""What changes from second to second and decides a selection: slots, health, statistics; read once a scan."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Count

from dispatch import capacity
from dispatch.capacity import Kind, Place, Subject
from dispatch.held_channels import held_until
from dispatch.live_catalogue import LiveCatalogue, ServedModel, SupplyFacts
from dispatch.models import CapacityLease, Job, Occupancy
from dispatch.refusals import at_supplies
from dispatch.routing.types import Condition, GroupCondition, Refusal, Statistics
from dispatch.samples import SAMPLE, SUCCESS
from health.circuit import RETURNING
from health.memory import Match, matching_refusals
from health.pressure import PROBE_WINDOW
from health.refusals import PROBE_LOOK_AGAIN, RefusalState, Standing
from health.snapshot import GroupPause, HealthFacts, HealthSnapshot, group_pauses, health_snapshot

STATISTICS_WINDOW = timedelta(days=1)
STATISTICS_MAX_SAMPLES = 1_000
_STATISTICS_KEPT_FOR = timedelta(seconds=10)
_P95_KEPT_FOR = timedelta(minutes=1)


@dataclass
class SelectionFacts:
    """Facts of one scan. `occupancy` rows are locked, and counted up as the scan takes slots, so that each
    job sees what the jobs before it left; a probe that one job claimed closes the way for the next."""

    catalogue: LiveCatalogue
    occupancy: dict[Subject, Occupancy]
    health: HealthSnapshot
    statistics: Mapping[str, Statistics]
    used_in_epoch: dict[Subject, int]
    pauses: dict[int, GroupPause]
    matches: dict[str, dict[int, Match]]  # refusal records, by fingerprint and supply
    held: Mapping[str, datetime]  # channels that get nothing new before then, by slug
    contents: set[str] = field(default_factory=set)  # that `know_contents` asked refusal memory for

    def channels(self, model: ServedModel) -> dict[str, Condition]:
        return {
            candidate.supply.channel.id: self._or_held(
                candidate.supply.channel.id,
                self._condition(
                    (Kind.CHANNEL.value, self._place(candidate.supply.id).channel_id), self.health.channels
                ),
            )
            for candidate in model.candidates
        }

    def supplies(self, model: ServedModel) -> dict[str, Condition]:
        return {
            candidate.supply.id: self._condition(
                (Kind.SUPPLY.value, self._place(candidate.supply.id).supply_id), self.health.supplies
            )
            for candidate in model.candidates
        }

    def groups(self, model: ServedModel) -> dict[str, GroupCondition]:
        found = {}
        for candidate in model.candidates:
            group, group_id = candidate.supply.channel.group, self._place(candidate.supply.id).group_id
            if group is not None and group_id is not None:
                row = self.occupancy[Kind.GROUP.value, group_id]
                pause = self.pauses.get(group_id)
                found[group.id] = GroupCondition(
                    used=row.confirmed + row.unknown, not_before=pause.not_before if pause else None
                )
        return found

    def know_contents(self, fingerprints: Iterable[str], now: datetime) -> None:
        """Asks refusal memory for contents that are to be placed too; those that it knows already stay."""
        asked = {fingerprint for fingerprint in fingerprints if fingerprint} - self.contents
        if not asked:
            return
        self.contents |= asked
        places = [
            supply.refusal_place for supply in self.catalogue.supplies.values() if self._is_theirs(supply)
        ]
        for fingerprint, of_content in matching_refusals(asked, places, now).items():
            self.matches[fingerprint] = dict(of_content)

    def _is_theirs(self, supply: SupplyFacts) -> bool:
        return (Kind.SUPPLY.value, supply.supply_id) in self.occupancy

    def refusals(self, job: Job, model: ServedModel, now: datetime) -> dict[str, Refusal]:
        """What the content of `job` may not be sent to, or only as the one probe."""
        supplies = {candidate.supply.id for candidate in model.candidates}
        standings = {
            supply: match.standing for supply in supplies if (match := self.match(job, supply)) is not None
        }
        return at_supplies(standings, supplies, model.closes_on_refusal, now)

    def match(self, job: Job, supply: str) -> Match | None:
        """The refusal record that holds for the content of `job` at `supply`."""
        return self.matches.get(job.content_fingerprint, {}).get(self._place(supply).supply_id)

    def is_probed(self, job: Job, record_id: int, now: datetime) -> None:
        """Somebody holds the record's probe: the content waits at every supply that it binds."""
        waits = Standing(RefusalState.COOLDOWN, now + PROBE_LOOK_AGAIN)
        of_content = self.matches[job.content_fingerprint]
        for supply_id, match in of_content.items():
            if match.record_id == record_id:
                of_content[supply_id] = replace(match, standing=waits)

    def group_to_probe(self, supply: str) -> int | None:
        """The paused group that an attempt on `supply` would be the first to use again."""
        group_id = self._place(supply).group_id
        pause = None if group_id is None else self.pauses.get(group_id)
        return group_id if pause and pause.probe_due else None

    def group_is_probed(self, group_id: int, now: datetime) -> None:
        self.pauses[group_id] = GroupPause(now + PROBE_WINDOW, probe_due=False)

    def take(self, place: Place) -> None:
        """One more slot is taken at `place`."""
        capacity.take(place, self.occupancy)
        for subject in place.subjects():
            if subject in self.used_in_epoch:
                self.used_in_epoch[subject] += 1

    def epoch_of_channel(self, channel_id: int) -> int:
        return self.health.channels[channel_id].epoch

    def epoch_of_supply(self, supply_id: int) -> int:
        return self.health.supplies[supply_id].epoch

    def _place(self, supply: str) -> Place:
        return self.catalogue.supplies[supply].place

    def _or_held(self, channel: str, condition: Condition) -> Condition:
        until = self.held.get(channel)
        return condition if until is None else replace(condition, not_before=until)

    def _condition(self, subject: Subject, health: Mapping[int, HealthFacts]) -> Condition:
        row, facts = self.occupancy[subject], health[subject[1]]
        return Condition(
            health=facts.state.value,
            recovery_successes=facts.recovery_successes,
            used=row.confirmed,
            unknown=row.unknown,
            used_in_epoch=self.used_in_epoch.get(subject),
            not_before=facts.not_before,
        )


def read_facts(
    catalogue: LiveCatalogue, models: Iterable[ServedModel], fingerprints: set[str], now: datetime
) -> SelectionFacts:
    """Locks the slots of every candidate of `models` until the transaction ends, then reads the rest.

    `fingerprints`: of the contents that are to be placed."""
    supplies = _supplies_of(catalogue, models)
    places = {supply.place for supply in supplies}
    occupancy = capacity.locked_occupancy(places)
    return _facts(catalogue, places, occupancy, _matches(supplies, fingerprints, now), now)


def glance(
    catalogue: LiveCatalogue,
    models: Iterable[ServedModel],
    now: datetime,
    fingerprints: Collection[str] = (),
) -> SelectionFacts:
    """The same facts for somebody who only looks: without a lock."""
    supplies = _supplies_of(catalogue, models)
    places = {supply.place for supply in supplies}
    occupancy = capacity.seen_occupancy(places)
    return _facts(catalogue, places, occupancy, _matches(supplies, set(fingerprints), now), now)


def _matches(
    supplies: list[SupplyFacts], fingerprints: set[str], now: datetime
) -> dict[str, dict[int, Match]]:
    found = matching_refusals(fingerprints, [supply.refusal_place for supply in supplies], now)
    return {fingerprint: dict(of_content) for fingerprint, of_content in found.items()}


def _supplies_of(catalogue: LiveCatalogue, models: Iterable[ServedModel]) -> list[SupplyFacts]:
    slugs = {candidate.supply.id for model in models for candidate in model.candidates}
    return [catalogue.supplies[slug] for slug in slugs]


def _facts(
    catalogue: LiveCatalogue,
    places: set[Place],
    occupancy: dict[Subject, Occupancy],
    matches: dict[str, dict[int, Match]],
    now: datetime,
) -> SelectionFacts:
    health = health_snapshot({place.channel_id for place in places}, {place.supply_id for place in places})
    return SelectionFacts(
        catalogue,
        occupancy,
        health,
        _statistics(catalogue, places, now),
        _used_in_epoch(health),
        group_pauses({place.group_id for place in places if place.group_id is not None}, now),
        matches,
        held_until(now),
    )


def _used_in_epoch(health: HealthSnapshot) -> dict[Subject, int]:
    """Leases granted under the present epoch; asked only for what is probing or recovering."""
    used: dict[Subject, int] = {}
    for kind, column, circuits in (
        (Kind.CHANNEL, "channel", health.channels),
        (Kind.SUPPLY, "supply", health.supplies),
    ):
        epochs = {number: facts.epoch for number, facts in circuits.items() if facts.state in RETURNING}
        granted = _granted_by_epoch(column, epochs) if epochs else {}
        used |= {(kind.value, number): granted.get((number, epoch), 0) for number, epoch in epochs.items()}
    return used


def _granted_by_epoch(column: str, numbers: Collection[int]) -> Mapping[tuple[int, int], int]:
    """Leases that are held, by channel or supply and the epoch that they were granted under; one query."""
    held = CapacityLease.objects.filter(**{f"{column}__in": numbers}, released_at=None)
    counted = held.values_list(column, f"{column}_epoch").annotate(Count("pk")).order_by()
    return {(number, epoch): leases for number, epoch, leases in counted}


_kept_statistics: dict[tuple[int, ...], tuple[datetime, dict[int, Statistics]]] = {}

_STATISTICS_SQL = f"""
SELECT supply.id, count(ended.*), count(ended.*) FILTER (WHERE ended.succeeded),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY ended.seconds) FILTER (WHERE ended.succeeded)
FROM unnest(%(supplies)s::bigint[]) AS supply(id)
LEFT JOIN LATERAL (
    SELECT {SUCCESS} AS succeeded, extract(epoch FROM generated_at - created_at) AS seconds
    FROM dispatch_attempt AS attempt
    WHERE supply_id = supply.id AND finished_at > %(since)s AND {SAMPLE}
    ORDER BY finished_at DESC LIMIT %(most)s
) AS ended ON true
GROUP BY supply.id
"""  # noqa: S608 - our own words


def _statistics(catalogue: LiveCatalogue, places: set[Place], now: datetime) -> dict[str, Statistics]:
    """Of each supply's newest ends; kept for some seconds, since a rate over a day does not move faster."""
    ids = tuple(sorted(place.supply_id for place in places))
    kept = _kept_statistics.get(ids)
    if kept is None or not timedelta(0) <= now - kept[0] < _STATISTICS_KEPT_FOR:
        _kept_statistics.clear()
        kept = _kept_statistics[ids] = (now, read_statistics(ids, now))
    by_id = {facts.supply_id: slug for slug, facts in catalogue.supplies.items()}
    return {by_id[number]: statistics for number, statistics in kept[1].items()}


_kept_p95: dict[int, tuple[datetime, float | None]] = {}


def p95_seconds(supply_id: int, now: datetime) -> float | None:
    """How long its newest successes took, but for a twentieth; None without any. Kept for a minute."""
    kept = _kept_p95.get(supply_id)
    if kept is None or not timedelta(0) <= now - kept[0] < _P95_KEPT_FOR:
        kept = _kept_p95[supply_id] = (now, read_statistics((supply_id,), now)[supply_id].p95_s)
    return kept[1]


def read_statistics(ids: tuple[int, ...], now: datetime) -> dict[int, Statistics]:
    """By supply; read anew."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STATISTICS_SQL,
            {"supplies": list(ids), "since": now - STATISTICS_WINDOW, "most": STATISTICS_MAX_SAMPLES},
        )
        rows = cursor.fetchall()
    return {
        number: Statistics(samples, successes, None if p95 is None else float(p95))
        for number, samples, successes, p95 in rows
    }
