"""The words of the console: every stored code with its sentence, in the reader's language.

Codes and values are stored, words are rendered: the same row reads in English and in Chinese."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

type Words = Mapping[str, str | Promise]

JOB_STATES: Final[Words] = {
    "queued": _("Queued"),
    "dispatching": _("Dispatching"),
    "running": _("Running"),
    "fetching_output": _("Fetching output"),
    "cancel_requested": _("Cancel requested"),
    "succeeded": _("Succeeded"),
    "failed": _("Failed"),
    "cancelled": _("Cancelled"),
    "expired": _("Expired"),
}
ATTEMPT_STATES: Final[Words] = {
    "ready": _("Ready"),
    "submitting": _("Submitting"),
    "submission_uncertain": _("Submission uncertain"),
    "accepted": _("Accepted"),
    "provider_queued": _("Queued at provider"),
    "running": _("Running"),
    "cancel_requested": _("Cancel requested"),
    "outcome_uncertain": _("Outcome uncertain"),
    "generated": _("Generated"),
    "fetching": _("Fetching output"),
    "succeeded": _("Succeeded"),
    "failed": _("Failed"),
    "cancelled": _("Cancelled"),
    "abandoned": _("Abandoned"),
}
MODALITIES: Final[Words] = {"video": _("Video"), "image": _("Image")}
SERVICE_CLASSES: Final[Words] = {
    "interactive": _("Interactive"),
    "standard": pgettext_lazy("service class", "Standard"),
    "batch": pgettext_lazy("service class", "Batch"),
}
# "Degraded" in three families, each with its own noun outside its column.
TIERS: Final[Words] = {
    "exact": pgettext_lazy("tier", "exact"),
    "fallback": pgettext_lazy("tier", "fallback"),
    "degraded": pgettext_lazy("tier", "degraded"),
}
TIER_NAMES: Final[Words] = {
    "exact": _("tier exact"),
    "fallback": _("tier fallback"),
    "degraded": _("tier degraded"),
}
TIER_TITLES: Final[Words] = {  # over the bindings of one tier
    "exact": _("Tier exact: the full capability"),
    "fallback": _("Tier fallback: the full capability, only when no exact supply is available"),
    "degraded": _("Tier degraded: a lesser request, only when neither is available"),
}
DEGRADATION: Final[Words] = {  # when no full supply is available
    "strict": _("wait or fail: never degrade"),
    "best_effort": _("deliver degraded, and say so"),
}
HEALTH: Final[Words] = {
    "healthy": pgettext_lazy("health", "Healthy"),
    "degraded": pgettext_lazy("health", "Degraded"),
    "circuit_open": pgettext_lazy("health", "Circuit open"),
    "probing": pgettext_lazy("health", "Probing"),
    "recovering": pgettext_lazy("health", "Recovering"),
    "disabled": pgettext_lazy("health", "Disabled"),
}
MODEL_STATES: Final[Words] = {  # of dispatch.queries.model_list.state_of
    "draft": _("Draft"),
    "enabled": _("Enabled"),
    "published": _("Published"),
    "saved": _("Saved, not published"),
    "withdrawn": _("Taken out of production"),
}
LIFECYCLES: Final[Words] = {
    "preview": _("preview"),
    "stable": _("stable"),
    "deprecated": _("deprecated"),
}
SEVERITIES: Final[Words] = {"critical": _("Critical"), "warning": _("Warning"), "info": _("Information")}
INPUTS: Final[Words] = {
    "reference_images": _("reference images"),
    "reference_videos": _("reference videos"),
    "reference_audios": _("reference audio"),
}
KINDS: Final[Words] = {  # of what search finds
    "model": _("Public model"),
    "job": _("Job"),
    "attempt": _("Attempt"),
    "round": _("Selection round"),
    "output": _("Output"),
    "customer": _("Customer"),
    "alert": _("Alert"),
    "refusal": _("Refusal"),
    "price": _("Price version"),
    "channel": _("Channel"),
    "supply": _("Supply"),
    "health_event": _("Health event"),
    "trial": _("Trial call"),
    "capability": _("Capability version"),
    "maintenance": _("Maintenance"),
    "lease": _("Slot"),
    "request": _("What a request changed"),
}
SUBJECTS: Final[Words] = {  # of alerts, and of what was seen
    "job": _("Job"),
    "attempt": _("Attempt"),
    "channel": _("Channel"),
    "supply": _("Supply"),
    "model": _("Public model"),
    "provider": _("Provider"),
    "raw_status": _("Status as it came"),
    "measured": _("Measured"),
    "samples": _("Samples"),
    "baseline": _("The day before"),
    "limit": _("Limit"),
    "held": _("Held"),
    "expires_on": _("Its last day"),
    "days_left": _("Days left"),
    "capability": _("Capability version"),
    "provider_job": _("The provider's id"),
    "booked": _("Booked as a loss"),
    "why": _("Why"),
    "until": _("Until"),
    "started_by": _("Started by"),
    "maintenance": _("Maintenance"),
}
EVENT_KINDS: Final[Words] = {
    "submit": _("Submission"),
    "poll": _("Status"),
    "callback": _("Callback"),
    "cancel": _("Cancel"),
    "recover": _("Look-up"),
    "fetch": _("Output"),
}
ERROR_CATEGORIES: Final[Words] = {
    "content": _("content refused"),
    "request": _("request"),
    "supply": _("supply"),
    "capacity": _("capacity"),
    "unknown": _("outcome unknown"),
}
USAGE_KINDS: Final[Words] = {
    "expected": _("Expected at acceptance"),
    "reversal": _("Expectation taken back"),
    "settled": _("Settled"),
    "correction": _("Correction"),
}
CREDIT_KINDS: Final[Words] = {
    "deposit": _("Deposit"),
    "reserve": _("Reserved at admission"),
    "release": _("Reserve released"),
    "charge": _("Charged"),
    "correction": _("Correction"),
}
DELIVERIES: Final[Words] = {  # of messages about alerts
    "webhook": _("Webhook"),
    "email": _("Mail"),
    "pending": _("On its way"),
    "delivered": _("Delivered"),
    "given_up": _("Given up"),
}
OUTCOMES: Final[Words] = {
    "selected": _("Selected"),
    "ranked": _("Ranked"),
    "excluded": _("Excluded"),
}
ROUND_OUTCOMES: Final[Words] = {
    "chosen": _("A supply was selected"),
    "waiting_capacity": _("Nobody was selected: waiting for capacity"),
    "no_candidate": _("Nobody was selected: no candidate was left"),
}
CHOICES: Final[Words] = {  # of dispatch.routing.auto.Why
    "only_offer": _("It was the only one that could take the request."),
    "best_tier": _("Its tier is better than that of the next best."),
    "lowest_cost": _("Of those in the best tier it costs least."),
    "slug": _("Tier and cost are equal: the first by name."),
    "first_that_waits": _("Nobody could take it at once; it is the first that waits for a slot."),
    "no_supply": _("Nobody could take it, and waiting would change nothing."),
}
SWITCHES: Final[Words] = {  # of dispatch.views.explanation.switch_state
    "none_yet": _("No attempt yet: one switch is possible later."),
    "used": _("The switch is used: attempt 2 is the last."),
    "available": _("Still possible, if this attempt fails for the supply's sake."),
    "not_needed": _("Not needed."),
    "not_taken": _("Not taken: the failure forbids it, or nobody else could."),
}
WAITING: Final[Words] = {  # of dispatch.waiting.Code: what blocks a job now
    "dispatcher_silent": _("No dispatcher scans: nothing new begins."),
    "deadline_passed": _("Its deadline has passed: the next scan ends it."),
    "set_aside": _("The last look at it failed; it is looked at again within a minute."),
    "not_looked_at": _("The next scan will look at it."),
    "model_not_published": _("Its public model is not published."),
    "no_capable_supply": _("No supply can do what it asks for."),
    "content_cooldown": _("Its content was refused; it is too early to ask again."),
    "content_frozen": _("Its content was refused too often; it is not sent there again."),
    "out_of_service": _("Those who could take it are switched off or draining."),
    "unhealthy": _("The circuits of those who could take it are open."),
    "provider_pause": _("Those who could take it have asked us to wait."),
    "unknown_slots_full": _("Slots with unknown outcome have reached their limit."),
    "capacity_full": _("No free slot: those who could take it are full."),
    "cost_limit": _("Those who could take it are above a cost limit."),
    "tenant_limit": _("As many jobs of its customer run as may at once."),
    "in_turn": _("Others come first in the fair queue."),
}
WAITING_STEPS: Final[Words] = {  # of dispatch.waiting.Step: where it is stopped
    "dispatcher": _("Dispatcher"),
    "model": _("Publication"),
    "capability": _("Hard capability"),
    "health_and_capacity": _("Health and capacity"),
    "cost": _("Stability and cost policy"),
    "queue": _("Fair queue"),
}
VERDICTS: Final[Words] = {  # of dispatch.waiting.verdict, with numbers
    "dispatcher_silent": _("Nothing moves because no dispatcher scans. Waiting: %(waiting)s."),
    "nothing_waits": _("Nothing is waiting."),
    "flowing": _("Flowing. Waiting: %(waiting)s."),
    "blocked": _("Waiting: %(waiting)s. Of these do not move: %(jobs)s. %(reason)s"),
}
WAITING_SHORT: Final[Words] = {  # heads of columns
    "dispatcher_silent": _("no dispatcher"),
    "deadline_passed": _("past its deadline"),
    "set_aside": _("look failed"),
    "not_looked_at": _("next scan"),
    "model_not_published": _("not published"),
    "no_capable_supply": _("nobody can"),
    "content_cooldown": _("content refused"),
    "content_frozen": _("content frozen"),
    "out_of_service": _("switched off"),
    "unhealthy": _("circuit open"),
    "provider_pause": _("provider's pause"),
    "unknown_slots_full": _("unknown slots"),
    "capacity_full": _("no free slot"),
    "cost_limit": _("cost limit"),
    "tenant_limit": _("customer's limit"),
    "in_turn": _("its turn"),
}
WAITING_PLACES: Final[Words] = {  # the page where a reason can be taken away
    "dispatcher_silent": _("Alerts"),
    "deadline_passed": _("Jobs"),
    "set_aside": _("Alerts"),
    "not_looked_at": _("Jobs"),
    "model_not_published": _("Publish"),
    "no_capable_supply": _("Public models"),
    "content_cooldown": _("Jobs"),
    "content_frozen": _("Jobs"),
    "out_of_service": _("Channels"),
    "unhealthy": _("Health"),
    "provider_pause": _("Health"),
    "unknown_slots_full": _("Uncertain attempts"),
    "capacity_full": _("Capacity"),
    "cost_limit": _("Public models"),
    "tenant_limit": _("Jobs"),
    "in_turn": _("Jobs"),
}
CHECKS: Final[Words] = {  # of dispatch.queries.standstill, in their order
    "arriving": _("Jobs arrive"),
    "dispatcher": _("The dispatcher is alive"),
    "switches": _("No switch or freeze stops them"),
    "published": _("Their models are published"),
    "capability": _("Candidates after step 1: hard capability"),
    "health": _("Candidates after step 2: health, capacity and cost"),
}
FINDINGS: Final[Words] = {  # of look-ups of an uncertain attempt
    "accepted": _("accepted"),
    "rejected": _("refused"),
    "unknown": _("outcome unknown"),
    "found": _("The provider has it."),
    "found_by_operator": _("found by an operator"),
    "absent": _("One complete listing does not hold it: a second one, apart, would prove that it is absent."),
    "cannottell": _("It does not tell whether the provider has it."),
    "status": _("The provider knows this task:"),
    "not_found": _("The provider does not know this task."),
    "no_answer": _("The provider did not answer."),
}
EVENT_OUTCOMES: Final[Words] = {  # of what a provider said: look-ups, statuses, answers to a cancellation
    **FINDINGS,
    **{
        code: ATTEMPT_STATES[code]
        for code in ("provider_queued", "running", "succeeded", "failed", "cancelled")
    },
    "throttled": _("The provider asked to slow down."),
    "expired": JOB_STATES["expired"],
    "requested": _("It was asked to stop."),
    "too_late": _("It is too late to stop it."),
    "unsupported": _("The provider cannot stop what runs."),
}
BROKE_WHILE: Final[Words] = {  # stages of a submission
    "connecting": _("the connection was being made"),
    "sending": _("the request was being sent"),
    "awaiting": _("the provider's answer was awaited"),
    "body": _("the provider's answer was being read"),
    "worker_lost": _("its worker was sending it, and did not come back"),
}
DECISIONS: Final[Words] = {  # of dispatch.decisions
    "exists": _("Provider has it"),
    "absent": _("Provider does not have it"),
    "give_up": _("Cannot be found out"),
}
DECISION_EVIDENCE: Final[Words] = {
    "exists": _("Provider's task id"),
    "absent": _("What you looked at, and when"),
    "give_up": _("Why it cannot be found out"),
}
SLOT_EFFECTS: Final[Words] = {
    "known": _("stays in use: unknown becomes known"),
    "freed": _("is freed at once"),
    "quarantine": _("stays taken in quarantine"),
}
CAUSES: Final[Words] = {  # of health.circuit.Cause: the rule that fired
    "repeated_failures": _("failures in a row"),
    "failure_rate": _("rate of failures over the limit"),
    "account_refused": _("key refused or balance empty"),
    "connect_failures": _("no connection, in a row"),
    "same_code_on_supplies": _("the same error on several supplies"),
    "recovery_failed": _("failure on its way back"),
    "cooldown_passed": _("cooldown over"),
    "account_check_failed": _("account check failed"),
    "probed_by_operator": _("probed before its time by an operator"),
    "recovery_step": _("one success more"),
    "recovered": _("recovered"),
    "restored": _("successes again"),
    "disabled_by_operator": _("disabled by an operator"),
    "enabled_by_operator": _("enabled by an operator"),
}
EVIDENCE: Final[Words] = {  # pieces of evidence about health: what happened
    "success": _("a success"),
    "failure": _("a failure"),
    "none": _("an end that says nothing of health"),
    "tick": _("time that passed"),
    "disable": _("a person's word: disable"),
    "enable": _("a person's word: enable"),
}
CAUSED_BY: Final[Words] = {"person": _("a person"), "rule": _("a rule")}
MAINTENANCE_FAULTS: Final[Words] = {  # of dispatch.maintenance
    "choose": _("Choose one."),
    "no_time": _("Give an end time."),
    "past": _("The end time lies in the future."),
    "far": _("The end time lies within 90 days."),
    "no_reason": _("Say why."),
    "not_ticked": _("Tick each model that loses its last supply of a tier."),
    "out_already": _("The channel is out already: somebody was first."),
}
LIMIT_FAULTS: Final[Words] = {
    "no_limit": _("A limit is a whole number of slots from 1 to 1,000,000."),
    "no_reason": _("Say why."),
}
SETTINGS: Final[Words] = {  # of a normalized request
    "mode": _("Mode"),
    "duration_s": _("Duration (s)"),
    "resolution": _("Resolution"),
    "aspect_ratio": _("Aspect ratio"),
    "fps": _("Frames per second"),
    "audio": _("Sound"),
    "seed": _("Seed"),
    "sample_count": _("Results"),
    "n": _("Results"),
    "size": _("Size"),
    "reference_images": _("Reference images"),
    "reference_videos": _("Reference videos"),
    "reference_audios": _("Reference audio"),
    "first_frame": _("First frame"),
    "last_frame": _("Last frame"),
    "real_person": _("Shows real persons"),
    "billing_mode": _("Billing mode"),
    "degradation": _("Degradation"),
    "routing_mode": _("Routing"),
    "regions": _("Regions"),
}
YES_NO: Final[Words] = {"yes": _("yes"), "no": _("no")}
PHASES: Final[Words] = {  # of dispatch.queries.timeline
    "queue": _("waiting"),
    "prepare": _("selected"),
    "submit": _("submitting"),
    "uncertain": _("outcome unknown"),
    "run": _("at the provider"),
    "deliver": _("fetching output"),
}
ORDERS: Final[Words] = {
    "stable_first": _("stability first"),
    "cost_first": _("cost first"),
    "manual_priority": _("manual priority"),
    "weighted": _("weighted"),
}
ALERTS: Final[Words] = {
    "exact_unavailable": _("No exact supply was available; another tier took the work."),
    "degradation_active": _("Results are being delivered degraded: inputs are dropped."),
    "emergency_override": _("The emergency availability override lifted the cost multipliers."),
    "channel_circuit_open": _("The channel's circuit is open: nothing is sent to it."),
    "supply_circuit_open": _("The supply's circuit is open: nothing is sent to it."),
    "submission_uncertain": _("It is not known whether the provider accepted a submission."),
    "submission_abandoned": _("A submission was given up with its outcome unknown; it may have been paid."),
    "unknown_slots_full": _("Slots with unknown outcome have reached their limit."),
    "maintenance_ending": _("A channel's maintenance is about to end, or is past its end."),
    "model_not_published": _("A public model was saved and is not published: its customers are refused."),
    "lease_drift": _("Counted slots and leases disagree."),
    "queue_drift": _("Counted and waiting jobs of the queue disagree."),
    "replay_difference": _("A stored selection, routed again, comes out differently."),
    "output_lost": _("A generated output could not be stored and is lost."),
    "stuck_attempt": _("An attempt is past its time and its outcome is not known."),
    "refusal_first": _("A provider refused content for the first time."),
    "refusal_frozen": _("A provider refused the same content too often; it is not sent there again."),
    "unknown_provider_status": _("A provider sent a status that the adapter does not know."),
    "cost_per_success_over": _("The cost of a success is over its limit."),
    "reconciliation_delta": _("The provider's bill and the ledger differ."),
    "no_dispatcher": _("No dispatcher is running: nothing new is sent."),
    "credential_expiring": _("A channel's credential is about to expire."),
    "capability_mismatch": _("A provider refused what its capability document promises."),
    "unmatched_charge": _("A provider charged for something the ledger does not know."),
    "submission_unknown_surge": _("Submissions with unknown outcome are piling up."),
    "provider_errors_and_timeouts": _("A provider's errors and timeouts are above normal."),
    "failover_rate_high": _("More jobs than usual need a second supply."),
    "safety_rate_shift": _("The rate of content refusals has shifted."),
    "latency_over_baseline": _("Generation takes longer than normal."),
}


def word(words: Words, code: str) -> str:
    """The code itself where it has no word: a new code is shown, not hidden."""
    return str(words.get(code, code))
