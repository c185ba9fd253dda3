"""What an operator does about an alert, and where: one sentence and one page a code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dispatch.views.vocabulary import Words

# The page to look at next: the name of its URL, and a query string.
_PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "exact_unavailable": ("models", ""),
    "degradation_active": ("degraded", ""),
    "emergency_override": ("models", ""),
    "channel_circuit_open": ("health", ""),
    "supply_circuit_open": ("health", ""),
    "submission_uncertain": ("uncertain", ""),
    "submission_abandoned": ("uncertain", ""),
    "unknown_slots_full": ("uncertain", ""),
    "lease_drift": ("capacity", ""),
    "queue_drift": ("dispatch", ""),
    "model_not_published": ("models", ""),
    "replay_difference": ("jobs", ""),
    "output_lost": ("jobs", "state=failed&since=24h"),
    "stuck_attempt": ("uncertain", ""),
    "refusal_first": ("refusals", ""),
    "refusal_frozen": ("refusals", "state=frozen"),
    "unknown_provider_status": ("jobs", ""),
    "cost_per_success_over": ("ledger", "book=providers"),
    "reconciliation_delta": ("ledger", "book=providers"),
    "sale_price_missing": ("models", ""),
    "no_dispatcher": ("dispatch", ""),
    "credential_expiring": ("channels", ""),
    "maintenance_ending": ("channels", ""),
    "capability_mismatch": ("supplies", ""),
    "unmatched_charge": ("ledger", "book=providers"),
    "submission_unknown_surge": ("uncertain", ""),
    "provider_errors_and_timeouts": ("health", ""),
    "failover_rate_high": ("jobs", "had=switch&since=1h"),
    "safety_rate_shift": ("refusals", ""),
    "latency_over_baseline": ("supplies", ""),
}
GUIDANCE: Final[Words] = {
    "exact_unavailable": _(
        "See which exact supplies are out, and bring one back. Jobs go on in another tier."
    ),
    "degradation_active": _(
        "See what is dropped and for whom. It ends when a full supply is available again."
    ),
    "emergency_override": _(
        "Jobs go to dearer supplies. Bring a cheaper one back, or take the override away."
    ),
    "channel_circuit_open": _(
        "See what opened it. It is probed after its cooldown; a refused key needs a new one."
    ),
    "supply_circuit_open": _(
        "See its last failures. It is probed after its cooldown, or before it by your word."
    ),
    "submission_uncertain": _(
        "It is looked for by itself. Decide it by hand where the provider's console says more."
    ),
    "submission_abandoned": _(
        "Look in the provider's console: a result there is paid for and delivered to nobody."
    ),
    "unknown_slots_full": _("Nothing new starts there until some of its unknown attempts are decided."),
    "lease_drift": _("The count was corrected. Report it: two counts of slots must never differ."),
    "queue_drift": _("The count was corrected. Report it: two counts of the queue must never differ."),
    "model_not_published": _("Publish it, or take it out on purpose: its customers are refused meanwhile."),
    "replay_difference": _("Report it with the round: a stored selection must come out as recorded."),
    "output_lost": _("The provider was paid and the job failed. See why the output could not be stored."),
    "stuck_attempt": _("Decide it by hand where the provider's console says what became of it."),
    "refusal_first": _("Nothing to do: it is tried again later, at most three times."),
    "refusal_frozen": _("Lift it only if the content is fit for this provider: it was refused four times."),
    "unknown_provider_status": _("Report the word: the adapter needs to learn what it means."),
    "cost_per_success_over": _("See which attempts were paid and delivered nothing."),
    "reconciliation_delta": _("Compare the cost rule with what the provider charges."),
    "sale_price_missing": _("Give the model a price for that profile: results of it are free meanwhile."),
    "no_dispatcher": _("Start a control worker and the pulse: nothing new is sent without them."),
    "credential_expiring": _("Store a new credential for the channel before its last day."),
    "maintenance_ending": _("End the maintenance, or let the clock end it as it was chosen."),
    "capability_mismatch": _("Publish a capability version that promises what the provider takes."),
    "unmatched_charge": _("It was charged and nobody got it. Claim it back when the bill has come."),
    "submission_unknown_surge": _(
        "New submissions of the channel are held back. See whether its network is well."
    ),
    "provider_errors_and_timeouts": _("See which supplies fail, and the provider's own status page."),
    "failover_rate_high": _("See which supply fails first, and whether another should stand before it."),
    "safety_rate_shift": _("See who sends what is refused, or whether the provider changed its rules."),
    "latency_over_baseline": _(
        "See whether the provider is slow for all, and whether its slots are too many."
    ),
}


@dataclass(frozen=True, slots=True)
class Guidance:
    words: str | Promise
    address: str


def guidance_of(code: str, evidence: Mapping[str, Any]) -> Guidance | None:
    """`evidence`: the alert's subject and details; a job or an attempt among them is the better place."""
    if code not in GUIDANCE:
        return None
    name, query = _PAGES[code]
    job = str(evidence.get("job", ""))
    if name == "jobs" and job.startswith("job_"):
        return Guidance(GUIDANCE[code], reverse("job", args=[job]))
    attempt = str(evidence.get("attempt", ""))
    if name == "uncertain" and attempt.startswith("att_"):
        return Guidance(GUIDANCE[code], reverse("uncertain_attempt", args=[attempt]))
    return Guidance(GUIDANCE[code], f"{reverse(name)}?{query}" if query else reverse(name))
