"""What customers are told: neutral sentences and stable codes, never a supplier's name or words."""

from dispatch.lifecycle import AttemptState, JobState
from dispatch.models import Attempt
from dispatch.waiting import Code

_BY_CATEGORY = {
    "content": ("content_refused", "The content was refused by moderation. Change the prompt or the inputs."),
    "request": ("invalid_input", "An input could not be used. Check the parameters and the reference files."),
}
_BY_CODE = {
    "real_person_policy": (
        "content_refused",
        "The content was refused because it may show a real person. Change the inputs.",
    ),
    "asset_unavailable": ("asset_unavailable", "A reference file could not be read. Check its address."),
    "asset_invalid": ("asset_invalid", "A reference file is broken or of a kind that can't be used."),
    "output_expired": ("output_lost", "The result was made but could not be stored. You are not charged."),
}
GENERATION_FAILED = ("generation_failed", "The generation failed. You are not charged; you may try again.")
SUBMISSION_UNKNOWN = (
    "submission_unknown",
    "It could not be established whether the generation ran. You are not charged; you may try again.",
)
DEADLINE = ("dispatch_deadline_exceeded", "No capacity became free in time. You are not charged.")
ACCESS_REVOKED = ("access_revoked", "The key or the account that submitted this job was closed.")
CANCELLED = ("cancelled", "Cancelled as you asked.")
WAITING = {
    "queued": "Waiting to be dispatched.",
    "model_not_published": "Waiting: the model is being changed. Your job goes on when that is done.",
    "no_candidate": "Waiting: nothing that serves this model is available right now.",
    "content_refused": "Waiting: this content was refused before, and is tried again later at the earliest.",
    "waiting_capacity": "Waiting for a free slot.",
    "tenant_limit": "Waiting: as many of your jobs run as may at once.",
    "in_turn": "Waiting: other jobs go first.",
}
_REASON_OF = {
    Code.MODEL_NOT_PUBLISHED: "model_not_published",
    Code.NO_CAPABLE_SUPPLY: "no_candidate",
    Code.CONTENT_COOLDOWN: "content_refused",
    Code.CONTENT_FROZEN: "content_refused",
    Code.OUT_OF_SERVICE: "no_candidate",
    Code.UNHEALTHY: "no_candidate",
    Code.PROVIDER_PAUSE: "waiting_capacity",
    Code.UNKNOWN_SLOTS_FULL: "waiting_capacity",
    Code.CAPACITY_FULL: "waiting_capacity",
    Code.COST_LIMIT: "no_candidate",
    Code.TENANT_LIMIT: "tenant_limit",
    Code.IN_TURN: "in_turn",
}
NO_SUPPLY = ("no_supply", "Nothing that serves this model can execute this request.")


def customer_error(state: JobState, last: Attempt | None, *, access_revoked: bool) -> tuple[str, str]:
    """Code and sentence for a job that ended in `state`, not succeeded."""
    if state is JobState.EXPIRED:
        return DEADLINE
    if state is JobState.CANCELLED:
        return CANCELLED
    if access_revoked:
        return ACCESS_REVOKED
    if last is None:
        return NO_SUPPLY
    if last.state == AttemptState.ABANDONED:
        return SUBMISSION_UNKNOWN
    return _BY_CODE.get(last.error_code) or _BY_CATEGORY.get(last.error_category) or GENERATION_FAILED


def waiting_reason(code: Code) -> tuple[str, str]:
    """Code and sentence for a job that waits; what is amiss inside is just a wait."""
    reason = _REASON_OF.get(code, "queued")
    return reason, WAITING[reason]
