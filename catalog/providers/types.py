"""What every adapter takes and answers, as frozen values. Neither Django nor models.

An expected outcome is a value, whatever the network or the provider did; exceptions are bugs and
`SendForbidden`, which the caller's own `before_send` raises to keep the first byte from leaving."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from catalog.providers.errors import ErrorTable
    from catalog.providers.http import Transport

# The keys of `POST jobs/`; assets are {"url": …}. See docs of the customer API.
type NormalizedRequest = Mapping[str, Any]
type Json = Mapping[str, Any]

type Phase = Literal["connecting", "sending", "awaiting", "body"]
type Category = Literal["content", "request", "supply", "capacity", "unknown"]
type Scope = Literal["request", "supply", "channel", "attempt"]
type ErrorCode = Literal[
    "invalid_input",
    "unsupported_capability",
    "safety_input",
    "safety_output",
    "real_person_policy",
    "auth",
    "permission",
    "balance",
    "quota",
    "rate_limited",
    "overloaded",
    "network",
    "asset_unavailable",
    "asset_invalid",
    "internal_retryable",
    "internal_permanent",
    "model_not_found",
    "submission_unknown",
    "output_expired",
    "unexpected_redirect",
    "not_created",
]
type Status = Literal[
    "provider_queued", "throttled", "running", "succeeded", "failed", "cancelled", "expired", "unknown"
]
type TransformationKind = Literal["exact", "lossless", "degrade", "reject"]
type Recovery = Literal["idempotent_key", "client_reference", "list_by_time", "none"]
type CancelSupport = Literal["none", "queued_only", "any_time"]
type CancelOutcome = Literal["requested", "too_late", "unsupported", "not_found", "failed"]
type AssetWay = Literal["url", "inline"]  # an address that the provider fetches, or a data: URL
# Who vouches for a callback. `provider`: it signs the body, which is believed like a poll's answer.
# `own_token`: ours in the address proves who calls and not what is said, so it only hints that a poll is due.
type CallbackSignature = Literal["none", "own_token", "provider"]


class SendForbidden(Exception):
    """Raised by `before_send`: the caller has lost the right to send. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class ChannelAccess:
    """One account at a provider, with its credential opened."""

    slug: str
    provider: str  # key of an adapter
    base_url: str
    credential: str = field(repr=False)
    config: Mapping[str, Any] = field(default_factory=dict)
    callback_url: str = field(default="", repr=False)  # empty: the provider is only asked
    callback_secrets: tuple[str, ...] = field(default=(), repr=False)  # the first makes tokens, all verify


@dataclass(frozen=True, slots=True)
class SupplyTarget:
    """What is to execute: the provider's model, and what its published capability says."""

    provider_model: str
    model_version: str = ""
    capability: Mapping[str, Any] = field(default_factory=dict)
    modality: str = ""  # without it no listing is believed to prove absence


@dataclass(frozen=True, slots=True)
class Transformation:
    """One thing done to the request on its way to the provider's words."""

    name: str
    kind: TransformationKind


@dataclass(frozen=True, slots=True)
class CompilePlan:
    """The provider's native request, without credential and client reference. Same input, same bytes."""

    modality: str
    method: str
    path: str  # below the channel's base address
    body: Mapping[str, Any] = field(repr=False)  # holds the prompt
    transformations: tuple[Transformation, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_from_json(stored: Mapping[str, Any]) -> CompilePlan:
    """The inverse of `CompilePlan.as_json`."""
    steps = tuple(Transformation(step["name"], step["kind"]) for step in stored.get("transformations", ()))
    return CompilePlan(stored["modality"], stored["method"], stored["path"], stored["body"], steps)


@dataclass(frozen=True, slots=True)
class CompileError:
    """Why this supply can't execute the request; found before anything is sent."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProviderError:
    """A failure in our words, with the provider's own kept in `raw`, redacted."""

    category: Category
    scope: Scope
    retryable: bool  # by a switch to another supply
    code: ErrorCode
    message: str = ""  # for operators
    retry_after_s: float | None = None
    raw_status: str = ""  # HTTP status or the provider's code
    raw: Json = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class OutputLocator:
    """Where an output can be fetched, and until when. The address is a secret."""

    url: str = field(repr=False)
    kind: Literal["video", "image"] = "video"
    expires_at: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def as_json(self) -> dict[str, Any]:
        expires_at = self.expires_at.isoformat() if self.expires_at else None
        return {"url": self.url, "kind": self.kind, "expires_at": expires_at, "headers": dict(self.headers)}


def locator_from_json(stored: Mapping[str, Any]) -> OutputLocator:
    """The inverse of `OutputLocator.as_json`."""
    expires_at = datetime.fromisoformat(stored["expires_at"]) if stored["expires_at"] else None
    return OutputLocator(stored["url"], stored["kind"], expires_at, stored["headers"])


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider has the job. Outputs come along only where it works synchronously."""

    provider_job_id: str
    request_id: str | None = None
    raw_status: str | None = None
    outputs: tuple[OutputLocator, ...] = ()
    raw: Json = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)

    def evidence(self) -> dict[str, Any]:
        return {"provider_job_id": self.provider_job_id, "request_id": self.request_id, "raw": dict(self.raw)}


@dataclass(frozen=True, slots=True)
class Rejected:
    """Proved not accepted. `stage` is where it ended."""

    error: ProviderError
    stage: Phase
    request_id: str | None = None

    def evidence(self) -> dict[str, Any]:
        return {"error": self.error.as_json(), "stage": self.stage, "request_id": self.request_id}


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody knows whether the provider works on it."""

    stage: Phase
    detail: str
    request_id: str | None = None
    raw: Json = field(default_factory=dict)

    def evidence(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "detail": self.detail,
            "request_id": self.request_id,
            "raw": dict(self.raw),
        }


type SubmitOutcome = Accepted | Rejected | Unknown


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How far a provider's job is. `progress` from 0 to 1. `usage`: the counts that are billed, and `cost` (a
    decimal text, as it came) with `currency` where the provider tells a cost of its own."""

    status: Status
    raw_status: str
    progress: float | None = None
    outputs: tuple[OutputLocator, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    error: ProviderError | None = None
    raw: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PollFailure:
    """The question was not answered; the job is none the worse for it."""

    not_found: bool
    retry_after_s: float | None = None
    detail: str = ""


type PollResult = JobStatus | PollFailure


@dataclass(frozen=True, slots=True)
class CancelResult:
    """`requested`: the provider took the wish; its end is polled all the same."""

    outcome: CancelOutcome
    raw: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """When a job may have been made, by our clock, which says `end_at` now."""

    begin_at: datetime
    end_at: datetime


@dataclass(frozen=True, slots=True)
class Found:
    provider_job_id: str
    raw_status: str | None = None
    raw: Json = field(default_factory=dict)

    def evidence(self) -> dict[str, Any]:
        return {"provider_job_id": self.provider_job_id, "raw": dict(self.raw)}


@dataclass(frozen=True, slots=True)
class Absent:
    """One complete listing of the window does not hold it. Two of them, apart, are proof."""

    listed: int
    detail: str = ""

    def evidence(self) -> dict[str, Any]:
        return {"listed": self.listed, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class CannotTell:
    reason: str

    def evidence(self) -> dict[str, Any]:
        return {"reason": self.reason}


type RecoverResult = Found | Absent | CannotTell


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The free account check: whether the credential works, without spending."""

    passed: bool
    error: ProviderError | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CallbackEvent:
    """A verified call by the provider. `event_id` is the provider's, or a hash of the body."""

    event_id: str
    provider_job_id: str
    status: JobStatus
    client_request_key: str | None = None


@dataclass(frozen=True, slots=True)
class CallbackInvalid:
    """Forged, stale or unreadable: kept, changes nothing, answered with 401."""

    reason: str


@dataclass(frozen=True, slots=True)
class AdapterCapabilities:
    """What the execution engine and the console must know of a protocol, as data."""

    asynchronous: Mapping[str, bool]  # modality: answers a job to poll, not the result
    recovery: Mapping[str, Recovery]  # modality: how a lost submission is found
    proves_absence: frozenset[int] = frozenset()  # 5xx statuses that prove non-acceptance
    cancel: Mapping[str, CancelSupport] = field(default_factory=dict)
    callback_signature: CallbackSignature = "none"
    # How a reference of each kind may be given; an adapter that says nothing takes addresses.
    assets: Mapping[str, tuple[AssetWay, ...]] = field(
        default_factory=lambda: dict.fromkeys(("image", "video", "audio"), ("url",))
    )
    output_url_lifetime_s: int | None = None
    free_account_check: bool = False


class Adapter(Protocol):
    """One provider's protocol; the README says in ten lines how to write one."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def capabilities(self) -> AdapterCapabilities: ...
    @property
    def config_schema(self) -> Mapping[str, Any]: ...
    @property
    def statuses(self) -> Mapping[str, Status]: ...
    @property
    def error_table(self) -> "ErrorTable": ...

    def compile(self, request: NormalizedRequest, supply: SupplyTarget) -> CompilePlan | CompileError: ...

    def submit(
        self,
        transport: "Transport",
        plan: CompilePlan,
        client_request_key: str,
        before_send: Callable[[], None],
    ) -> SubmitOutcome:
        """Posts once. `before_send` is called on the standing connection before the first byte."""
        ...

    def poll(self, transport: "Transport", provider_job_id: str) -> PollResult: ...

    def cancel(self, transport: "Transport", provider_job_id: str) -> CancelResult: ...

    def recover(
        self,
        transport: "Transport",
        client_request_key: str,
        request_hash: str,
        supply: SupplyTarget,
        window: Window,
    ) -> RecoverResult: ...

    def check(self, transport: "Transport") -> CheckResult: ...

    def parse_callback(
        self,
        headers: Mapping[str, str],
        body: bytes,
        *,
        query: Mapping[str, str],
        access: ChannelAccess,
        now: datetime,
    ) -> CallbackEvent | CallbackInvalid: ...
