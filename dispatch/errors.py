"""What a caller of the gateway can do wrong; `config/api.py` gives each its HTTP status."""

from datetime import datetime


class DispatchError(Exception):
    """Base of the errors below. `code` is stable and documented; `field` is a path into the request."""

    code = "dispatch_error"

    def __init__(self, message: str, field: str = "") -> None:
        self.field = field
        super().__init__(message)


class InvalidRequest(DispatchError):
    """A value that the public model does not take; the message says which are."""

    code = "invalid_request"


class UnknownModel(DispatchError):
    """No public model of that name is open to this customer."""

    code = "model_not_found"


class ModelNotPublished(DispatchError):
    """The model exists but is being changed: try again later."""

    code = "model_not_published"


class IdempotencyConflict(DispatchError):
    """The key stands for another request: use a new one."""

    code = "idempotency_conflict"


class TryLater(DispatchError):
    """Nothing was accepted now; the same request may succeed after `retry_after_s` seconds."""

    retry_after_s = 10


class QueueFull(TryLater):
    """This customer has as many jobs waiting as it may: try again when some have begun."""

    code = "queue_full"


class NoCapacity(TryLater):
    """Every supply that could take the request is busy, and this call does not wait."""

    code = "no_capacity"
    retry_after_s = 2

    def __init__(self, message: str = "No slot is free right now, and this call does not wait.") -> None:
        super().__init__(message)


class NothingAvailable(TryLater):
    """No supply that could take the request is in service."""

    code = "nothing_available"

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("Nothing that serves this model is available right now.")


class ContentRefused(DispatchError):
    """Refused before; the content may be submitted again at `next_at`, None: not until something changes."""

    code = "content_refused"

    def __init__(self, next_at: datetime | None) -> None:
        self.next_at = next_at
        when = f"It may be submitted again at {next_at:%Y-%m-%dT%H:%M:%SZ}." if next_at else ""
        super().__init__(
            f"The content was refused by moderation. Change the prompt or the inputs. {when}".strip()
        )


class AssetInvalid(DispatchError):
    """An uploaded file that can't be used; `reason` is a word of `dispatch.outputs.media.Invalid`."""

    code = "asset_invalid"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The file can't be used as an image, a video or a sound: {reason}.", "file")


class AssetTooLarge(DispatchError):
    """An uploaded file is larger than a file of its kind may be."""

    code = "asset_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"The file is too large: at most {limit_bytes} bytes.", "file")


class OutputExpired(DispatchError):
    """The file was delivered, and kept for as long as its answer said."""

    code = "output_expired"


class UnknownAsset(DispatchError):
    """No uploaded file of this customer has that id."""

    code = "asset_not_found"


class UnknownReference(DispatchError):
    """A request names a file that this customer never uploaded."""

    code = "asset_not_found"


class UnknownJob(DispatchError):
    """No job of this customer has that id."""

    code = "job_not_found"


class AlreadyFinished(DispatchError):
    """A finished job can't be cancelled."""

    code = "job_already_finished"


class CostOverLimit(DispatchError):
    """The price is above the request's own `max_cost`."""

    code = "over_max_cost"


class TakenByAnother(DispatchError):
    """Another operator is on this attempt until `until_at`."""

    code = "taken_by_another"

    def __init__(self, operator: str, until_at: datetime) -> None:
        self.operator, self.until_at = operator, until_at
        super().__init__(f"{operator} is on it until {until_at:%H:%M} UTC. Take it over to decide it.")


class AlreadyDecided(DispatchError):
    """The attempt's outcome is no longer unknown: read what was found."""

    code = "already_decided"


class DecisionNeedsEvidence(DispatchError):
    """The decision lacks what it must rest on; `field` says which."""

    code = "decision_needs_evidence"


class TaskOfAnother(DecisionNeedsEvidence):
    """The provider's task that was named belongs to another attempt, whose public id is `attempt`."""

    def __init__(self, task: str, attempt: str) -> None:
        self.task, self.attempt = task, attempt
        super().__init__(f"{task} belongs to {attempt}.", "provider_job_id")


class SenderNotEnded(DecisionNeedsEvidence):
    """The worker that was allowed to send has not come to an end, and may go on: nothing proves absence."""

    def __init__(self) -> None:
        super().__init__("The worker that may send this has not ended: it could still reach the provider.")


class NotAtProvider(DispatchError):
    """The provider did not confirm the job id, so it is not believed."""

    code = "not_at_provider"
