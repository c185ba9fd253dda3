"""Words of jobs and attempts: their states, selections, requests and bookings."""

from typing import Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dispatch.views.vocabulary.words import Words

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
INPUTS: Final[Words] = {
    "reference_images": _("reference images"),
    "reference_videos": _("reference videos"),
    "reference_audios": _("reference audio"),
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
BROKE_WHILE: Final[Words] = {  # stages of a submission
    "connecting": _("the connection was being made"),
    "sending": _("the request was being sent"),
    "awaiting": _("the provider's answer was awaited"),
    "body": _("the provider's answer was being read"),
    "worker_lost": _("its worker was sending it, and did not come back"),
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
EVIDENCE: Final[Words] = {  # pieces of evidence about health: what happened
    "success": _("a success"),
    "failure": _("a failure"),
    "none": _("an end that says nothing of health"),
    "tick": _("time that passed"),
    "probe": _("a person's word: probe now"),
    "check_failed": _("the account check failed"),
    "disable": _("a person's word: disable"),
    "enable": _("a person's word: enable"),
    "enable_healthy": _("a person's word: enable as healthy"),
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
ROUTING_MODES: Final[Words] = {  # of requests
    "preferred": _("the model that was named, or its substitutes"),
    "strict_model": _("the named model only, without substitutes"),
    "auto": _("any model that fits"),
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
