"""Words of what operators look after: health, alerts, models, uncertain attempts, maintenance."""

from typing import Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dispatch.views.vocabulary.words import Words

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
DELIVERIES: Final[Words] = {  # of messages about alerts
    "webhook": _("Webhook"),
    "email": _("Mail"),
    "pending": _("On its way"),
    "delivered": _("Delivered"),
    "given_up": _("Given up"),
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
ALERTS: Final[Words] = {
    "exact_unavailable": _("No exact supply was available; another tier took the work."),
    "degradation_active": _("Results are being delivered degraded: inputs are dropped."),
    "emergency_override": _("The emergency availability override lifted the cost multipliers."),
    "channel_circuit_open": _(
        "The channel's circuit opened: nothing but probes is sent to it until they succeed."
    ),
    "supply_circuit_open": _(
        "The supply's circuit opened: nothing but probes is sent to it until they succeed."
    ),
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
    "sale_price_missing": _("A result was delivered for nothing: the model has no price for its profile."),
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
RECOVERIES: Final[Words] = {  # of catalog.providers.types: how a lost submission is found
    "idempotent_key": _("by its request key, which may be sent again"),
    "client_reference": _("by our reference in the account's list"),
    "list_by_time": _("by time and model in the account's list"),
    "none": _("not at all"),
}
CANCELS: Final[Words] = {
    "none": _("not at all"),
    "queued_only": _("while it is queued"),
    "any_time": _("at any time"),
}
CALLBACK_SIGNATURES: Final[Words] = {  # who vouches for what a provider tells unasked
    "none": _("It tells nothing by itself: it is only asked."),
    "own_token": _("A call proves who calls, not what is said: it only hints that it is time to ask."),
    "provider": _("The provider signs its calls: they are believed like an answer."),
}
ASSET_KINDS: Final[Words] = {"image": _("Image"), "video": _("Video"), "audio": _("Sound")}
ASSET_WAYS: Final[Words] = {"url": _("by address"), "inline": _("within the request")}
