"""What must hold in every committed state, as one question to the database each; empty answers are good.

Constraints hold some of these already; they are asked all the same, since a dropped constraint tells nobody."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection

from dispatch.estimates import MOST_MS
from dispatch.lifecycle import CONFIRMED_STATES, FINAL_ATTEMPT_STATES, FINAL_JOB_STATES, UNKNOWN_STATES


@dataclass(frozen=True)
class Violation:
    """`subject` names the row by its public id where it has one."""

    invariant: str
    subject: str
    found: str


def _words(states: object) -> str:
    return ", ".join(f"'{state}'" for state in sorted(states))  # type: ignore[call-overload]


_FINAL_ATTEMPTS, _FINAL_JOBS = _words(FINAL_ATTEMPT_STATES), _words(FINAL_JOB_STATES)

# Each query answers (subject, what was found) for every violation.
QUERIES: Mapping[str, str] = {
    "a job has at most two attempts, numbered without a gap": """
        SELECT job.public_id, string_agg(attempt.number::text, ',' ORDER BY attempt.number)
        FROM dispatch_attempt attempt JOIN dispatch_job job ON job.id = attempt.job_id
        GROUP BY job.public_id HAVING count(*) > 2 OR max(attempt.number) <> count(*)""",
    "a job has at most one live attempt": f"""
        SELECT job.public_id, count(*)::text
        FROM dispatch_attempt attempt JOIN dispatch_job job ON job.id = attempt.job_id
        WHERE attempt.state NOT IN ({_FINAL_ATTEMPTS}) GROUP BY job.public_id HAVING count(*) > 1""",
    "a second attempt begins only after the first failed": """
        SELECT second.public_id, first.state
        FROM dispatch_attempt second JOIN dispatch_attempt first
          ON first.job_id = second.job_id AND first.number = 1
        WHERE second.number = 2
          AND (first.state <> 'failed' OR second.created_at < first.finished_at OR NOT first.retryable
               OR first.error_category NOT IN ('supply', 'capacity'))""",
    "the two attempts of a job use two supplies": """
        SELECT second.public_id, second.supply_id::text
        FROM dispatch_attempt second JOIN dispatch_attempt first
          ON first.job_id = second.job_id AND first.number = 1 AND first.supply_id = second.supply_id
        WHERE second.number = 2""",
    "a finished job has no live attempt": f"""
        SELECT job.public_id, attempt.public_id || ' ' || attempt.state
        FROM dispatch_attempt attempt JOIN dispatch_job job ON job.id = attempt.job_id
        WHERE job.state IN ({_FINAL_JOBS}) AND attempt.state NOT IN ({_FINAL_ATTEMPTS})""",
    "a succeeded job adopted a succeeded attempt of its own, with an output": """
        SELECT job.public_id, coalesce(attempt.public_id || ' ' || attempt.state, 'nothing adopted')
        FROM dispatch_job job LEFT JOIN dispatch_attempt attempt ON attempt.id = job.adopted_attempt_id
        WHERE (job.state = 'succeeded') <> (job.adopted_attempt_id IS NOT NULL)
           OR job.state = 'succeeded' AND (attempt.state <> 'succeeded' OR attempt.job_id <> job.id
              OR NOT EXISTS (SELECT FROM dispatch_asset asset WHERE asset.attempt_id = attempt.id))""",
    "an attempt holds the slot that its state asks for": f"""
        SELECT attempt.public_id, attempt.state || ' with ' || coalesce(lease.state, 'no lease')
        FROM dispatch_attempt attempt
        LEFT JOIN dispatch_capacitylease lease ON lease.attempt_id = attempt.id AND lease.released_at IS NULL
        WHERE attempt.state IN ({_words(CONFIRMED_STATES)}) AND lease.state IS DISTINCT FROM 'live'
           OR attempt.state IN ({_words(UNKNOWN_STATES)}) AND lease.state IS DISTINCT FROM 'unknown'
           OR attempt.state IN ('generated', 'fetching', 'succeeded', 'failed', 'cancelled')
              AND lease.id IS NOT NULL""",
    "counted slots equal the leases": """
        WITH leases AS (
            SELECT 'a_group' AS kind, group_id AS subject_id, state FROM dispatch_capacitylease
             WHERE released_at IS NULL AND group_id IS NOT NULL
            UNION ALL SELECT 'b_channel', channel_id, state FROM dispatch_capacitylease WHERE released_at IS NULL
            UNION ALL SELECT 'c_supply', supply_id, state FROM dispatch_capacitylease WHERE released_at IS NULL),
        counted AS (
            SELECT kind, subject_id, count(*) FILTER (WHERE state = 'live') AS confirmed,
                   count(*) FILTER (WHERE state = 'unknown') AS unknown FROM leases GROUP BY 1, 2)
        SELECT coalesce(o.kind, c.kind) || ':' || coalesce(o.subject_id, c.subject_id),
               format('counted %s + %s, leases %s + %s', o.confirmed, o.unknown, c.confirmed, c.unknown)
        FROM dispatch_occupancy o FULL JOIN counted c ON c.kind = o.kind AND c.subject_id = o.subject_id
        WHERE coalesce(o.confirmed, 0) <> coalesce(c.confirmed, 0)
           OR coalesce(o.unknown, 0) <> coalesce(c.unknown, 0)""",
    "every attempt has its own selection round, which chose its supply": """
        SELECT attempt.public_id, round.public_id
        FROM dispatch_attempt attempt
        JOIN dispatch_selectionround round ON round.id = attempt.selection_round_id
        JOIN catalog_supply supply ON supply.id = attempt.supply_id
        WHERE round.job_id <> attempt.job_id OR round.attempt_number <> attempt.number
           OR round.outcome <> 'chosen' OR round.snapshot #>> '{decision,chosen}' <> supply.slug""",
    "rounds run through the job without a gap": """
        SELECT job.public_id, string_agg(round.number::text, ',' ORDER BY round.number)
        FROM dispatch_selectionround round JOIN dispatch_job job ON job.id = round.job_id
        GROUP BY job.public_id HAVING max(round.number) <> count(*)""",
    "what the provider has was accepted by an attempt": """
        SELECT attempt.public_id, attempt.state FROM dispatch_providerjob provider_job
        JOIN dispatch_attempt attempt ON attempt.id = provider_job.attempt_id
        WHERE attempt.accepted_at IS NULL OR provider_job.channel_id <> attempt.channel_id""",
    "a live attempt always has a next look or a lease that ends": f"""
        SELECT attempt.public_id, attempt.state FROM dispatch_attempt attempt
        WHERE attempt.state NOT IN ({_FINAL_ATTEMPTS}) AND attempt.next_look_at IS NULL
          AND NOT EXISTS (SELECT FROM dispatch_capacitylease lease
                          WHERE lease.attempt_id = attempt.id AND lease.released_at IS NULL)""",
    "a job without a live attempt that is not finished has a next action": f"""
        SELECT job.public_id, job.state FROM dispatch_job job
        WHERE job.state NOT IN ({_FINAL_JOBS}) AND job.next_action_at IS NULL AND job.line_id IS NULL
          AND NOT EXISTS (SELECT FROM dispatch_attempt attempt
                          WHERE attempt.job_id = job.id AND attempt.state NOT IN ({_FINAL_ATTEMPTS}))""",
    "a job in the queue waits for its first attempt, in a line of its own customer, class and model": """
        SELECT job.public_id, job.state FROM dispatch_job job
        JOIN dispatch_line line ON line.id = job.line_id JOIN dispatch_lot lot ON lot.id = line.lot_id
        JOIN dispatch_tenantqueue tenant ON tenant.id = line.tenant_id
        WHERE job.state <> 'queued' OR job.next_action_at IS NOT NULL OR job.queue_at IS NULL
           OR job.estimated_ms < 1 OR job.customer_id <> tenant.customer_id
           OR job.service_class <> tenant.service_class OR job.public_model_id <> lot.public_model_id
           OR EXISTS (SELECT FROM dispatch_attempt attempt WHERE attempt.job_id = job.id)""",
    "what is counted in a line stands there": """
        SELECT 'line ' || line.id, format('counted %s, jobs %s', line.waiting, count(job.id))
        FROM dispatch_line line LEFT JOIN dispatch_job job ON job.line_id = line.id
        GROUP BY line.id HAVING line.waiting <> count(job.id)""",
    "what a tenant has waiting is the sum of its lines": """
        SELECT 'tenant queue ' || tenant.id, format('counted %s, lines %s', tenant.waiting, sum(line.waiting))
        FROM dispatch_tenantqueue tenant LEFT JOIN dispatch_line line ON line.tenant_id = tenant.id
        GROUP BY tenant.id HAVING tenant.waiting <> coalesce(sum(line.waiting), 0)""",
    "no job that may begin stands before the watermark of its line": """
        SELECT job.public_id, line.watermark_at::text FROM dispatch_job job
        JOIN dispatch_line line ON line.id = job.line_id JOIN dispatch_lot lot ON lot.id = line.lot_id
        WHERE job.queue_at < line.watermark_at
          AND job.dispatch_deadline_at > coalesce(lot.looked_at, '-infinity') + interval '6 seconds'""",
    "no debt in the queue is larger than the largest job": f"""
        SELECT 'tenant queue ' || id, deficit_ms::text FROM dispatch_tenantqueue WHERE deficit_ms < -{MOST_MS}
        UNION ALL SELECT service_class, deficit_ms::text FROM dispatch_classturn WHERE deficit_ms < -{MOST_MS}""",
    "the re-probe of refused content is held by an attempt that may still be refused": f"""
        SELECT record.public_id, record.probe || ' ' || coalesce(attempt.state, 'no such attempt')
        FROM health_refusalrecord record LEFT JOIN dispatch_attempt attempt ON attempt.public_id = record.probe
        WHERE record.probe <> ''
          AND (attempt.id IS NULL OR attempt.state IN ({_FINAL_ATTEMPTS}, 'generated', 'fetching'))""",
    "what was booked for an attempt is what it cost": """
        SELECT coalesce(attempt.public_id, booked.attempt), format('booked %s, cost %s', booked.micros, attempt.cost_micros)
        FROM (SELECT attempt, sum(amount_micros) AS micros, bool_or(kind = 'settled') AS settled
              FROM billing_providerusageentry GROUP BY attempt) booked
        FULL JOIN dispatch_attempt attempt ON attempt.public_id = booked.attempt
        WHERE coalesce(booked.settled, false) <> (attempt.cost_micros IS NOT NULL)
           OR attempt.cost_micros IS NOT NULL AND booked.micros <> attempt.cost_micros""",
    "a job's provider cost is the sum of its attempts'": """
        SELECT job.public_id, format('%s, attempts %s', job.provider_cost_micros, sum(attempt.cost_micros))
        FROM dispatch_job job LEFT JOIN dispatch_attempt attempt ON attempt.job_id = job.id
        GROUP BY job.id HAVING job.provider_cost_micros <> coalesce(sum(attempt.cost_micros), 0)""",
    "a finished job's reserve was given back and its charge taken, once": f"""
        SELECT job.public_id, format('reserved %s, charged %s, booked %s', job.reserved_micros, job.charged_micros,
                                     coalesce(sum(entry.amount_micros), 0))
        FROM dispatch_job job LEFT JOIN billing_creditentry entry ON entry.job = job.public_id
        GROUP BY job.id
        HAVING coalesce(sum(entry.amount_micros), 0) <>
               CASE WHEN job.state IN ({_FINAL_JOBS}) THEN -job.charged_micros ELSE -job.reserved_micros END""",
    "a customer's balance is the sum of its entries": """
        SELECT customer.public_id, format('%s, entries %s', customer.balance_micros, coalesce(sum(entry.amount_micros), 0))
        FROM billing_customer customer LEFT JOIN billing_creditentry entry ON entry.customer_id = customer.id
        GROUP BY customer.id HAVING customer.balance_micros <> coalesce(sum(entry.amount_micros), 0)""",
    "a published model is published at its own revision": """
        SELECT public_id, format('revision %s, published %s', revision, published_revision)
        FROM catalog_publicmodel WHERE published AND published_revision IS DISTINCT FROM revision""",
    "evidence can't be changed: the triggers are in force": """
        SELECT name, 'no trigger' FROM unnest(ARRAY['dispatch_selectionround', 'dispatch_providerevent',
            'billing_providerusageentry', 'billing_creditentry', 'catalog_auditentry', 'health_healthevent']) AS name
        WHERE (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(name) AND tgname LIKE '%append_only'
               AND tgenabled = 'O') < 2""",
}


def violations() -> list[Violation]:
    """Every violation in the database, by invariant."""
    found = []
    with connection.cursor() as cursor:
        for invariant, query in QUERIES.items():
            cursor.execute(query)  # without parameters, so that a % is only a %
            found += [Violation(invariant, str(subject), str(what)) for subject, what in cursor.fetchall()]
    return found
