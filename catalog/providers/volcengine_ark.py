"""Volcengine Ark: Seedance video (asynchronous) and Seedream images (synchronous).

The model adapter: to add a provider, copy this file, fill its tables, register it, pass tests/providers.
A lost video is found by `safety_identifier`, which carries our reference and is listed with the task; a
lost image cannot be found. A task is cancelled by deleting it, which would erase one that has ended."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from catalog.providers import errors
from catalog.providers.callbacks import CONFIG as CALLBACK_CONFIG
from catalog.providers.callbacks import callback_address, event_id, is_fresh, verified_key
from catalog.providers.documents import (
    Unreadable,
    address,
    name,
    number,
    progress,
    read_document,
    section,
    words,
)
from catalog.providers.errors import ErrorKind, ErrorTable, Wording
from catalog.providers.http import Answer, Broken, Exchange, Transport
from catalog.providers.listing import Page, Row, Unlisted, look_up
from catalog.providers.redaction import cleaned, redacted
from catalog.providers.types import (
    Accepted,
    AdapterCapabilities,
    CallbackEvent,
    CallbackInvalid,
    CancelOutcome,
    CancelResult,
    CannotTell,
    ChannelAccess,
    CheckResult,
    CompileError,
    CompilePlan,
    Found,
    JobStatus,
    NormalizedRequest,
    OutputLocator,
    PollFailure,
    PollResult,
    ProviderError,
    RecoverResult,
    Status,
    SubmitOutcome,
    SupplyTarget,
    Window,
)
from catalog.providers.verdict import Protocol, answered_at, error_in, judge, retry_after_s
from catalog.providers.volcengine_ark_request import TASKS, compile_image, compile_video

_LIST_PAGE_ROWS = 100
_OUTPUT_LIFETIME = timedelta(hours=24)
_CANCEL_REFUSALS: Final[Mapping[int, CancelOutcome]] = {404: "not_found", 400: "too_late", 409: "too_late"}


STATUSES: Final[Mapping[str, Status]] = {
    "queued": "provider_queued",
    "running": "running",
    "succeeded": "succeeded",
    "succeed": "succeeded",
    "success": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "expired": "expired",
}

_MODERATION: Final[Mapping[str, ErrorKind]] = {
    f"{subject}SensitiveContentDetected{suffix}": errors.REAL_PERSON
    if suffix == ".PrivacyInformation"
    else kind
    for subjects, kind in (
        (("InputText", "InputImage", "InputVideo", "InputAudio"), errors.SAFETY_INPUT),
        (("OutputText", "OutputImage", "OutputVideo", "OutputAudio"), errors.SAFETY_OUTPUT),
    )
    for subject in subjects
    for suffix in ("", ".PolicyViolation", ".PrivacyInformation")
}

ERRORS: Final = ErrorTable(
    codes={
        **_MODERATION,
        "SensitiveContentDetected": errors.SAFETY_INPUT,
        "SensitiveContentDetected.SevereViolation": errors.SAFETY_INPUT,
        "SensitiveContentDetected.Violence": errors.SAFETY_INPUT,
        "InputTextRiskDetection": errors.SAFETY_INPUT,
        "InputImageRiskDetection": errors.SAFETY_INPUT,
        "OutputTextRiskDetection": errors.SAFETY_OUTPUT,
        "OutputImageRiskDetection": errors.SAFETY_OUTPUT,
        "InvalidEndpoint.ClosedEndpoint": errors.MODEL_NOT_FOUND,
        "InvalidEndpointOrModel.NotFound": errors.MODEL_NOT_FOUND,
        "ModelNotOpen": errors.MODEL_NOT_FOUND,
        "AuthenticationError": errors.AUTH,
        "AccessDenied": errors.PERMISSION,
        "AccountOverdueError": errors.BALANCE,
        "RateLimitExceeded.EndpointRPMExceeded": errors.RATE_LIMITED,
        "RateLimitExceeded.EndpointTPMExceeded": errors.RATE_LIMITED,
        "ModelAccountRpmRateLimitExceeded": errors.RATE_LIMITED,
        "ModelAccountTpmRateLimitExceeded": errors.RATE_LIMITED,
        "QuotaExceeded": errors.QUOTA,
        "ModelLoadingError": errors.OVERLOADED,
        "ServerOverloaded": errors.OVERLOADED,
        "InternalServiceError": errors.INTERNAL_RETRYABLE,
    },
    families={"MissingParameter": errors.INVALID_INPUT, "InvalidParameter": errors.INVALID_INPUT},
)


def _wording(document: Mapping[str, Any]) -> Wording | None:
    """`{"error": {"code", "message", "param", "type"}}`, of an answer and of a failed task alike."""
    error = section(document, "error")
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not code.strip():
        return None
    return Wording(code.strip(), message if isinstance(message, str) else "", redacted({"error": error}))


PROTOCOL: Final = Protocol(ERRORS, _wording, request_id_header="x-request-id")


def _accepted_task(document: Mapping[str, Any], request_id: str | None) -> Accepted | None:
    task_id = name(document.get("id"))
    if task_id is None:
        return None
    return Accepted(task_id, request_id, raw=redacted(document))


def _task_status(document: Mapping[str, Any]) -> JobStatus:
    raw_status = document.get("status")
    status: Status = STATUSES.get(words(raw_status), "unknown")
    outputs = _video_outputs(document)
    wording = _wording(document)
    error = ERRORS.classify(wording) if wording is not None and status in ("failed", "succeeded") else None
    if status == "succeeded" and not outputs:
        status, error = "failed", error or _without_words("a success without an output", document)
    if status == "failed":
        error = error or _without_words("a failure without a reason", document)
    return JobStatus(
        status=status,
        raw_status=cleaned(raw_status if isinstance(raw_status, str) else repr(raw_status), 80),
        progress=progress(document.get("progress")),
        outputs=outputs if status == "succeeded" else (),
        usage=_counts(document),
        error=error if status == "failed" else None,
        raw=redacted(document),
    )


def _without_words(message: str, document: Mapping[str, Any]) -> ProviderError:
    return errors.error_of(errors.INTERNAL_PERMANENT, message, raw=redacted(document))


def _video_outputs(document: Mapping[str, Any]) -> tuple[OutputLocator, ...]:
    url = address(section(document, "content").get("video_url"))
    if url is None:
        return ()
    made_at = _moment(document.get("updated_at"))
    return (OutputLocator(url, "video", made_at + _OUTPUT_LIFETIME if made_at else None),)


def _counts(document: Mapping[str, Any]) -> dict[str, Any]:
    """The counts that are billed: tokens, pictures. Who sells the protocol on may tell a cost of his own."""
    usage = section(document, "usage")
    counts: dict[str, Any] = {
        key: count for key, value in usage.items() if name(key) and (count := number(value)) is not None
    }
    if usage.get("cost") is not None:
        counts |= {"cost": cleaned(str(usage["cost"]), 40), "currency": name(usage.get("currency"))}
    return counts


def _moment(value: Any) -> datetime | None:
    seconds = number(value)
    if seconds is None or seconds > 32_503_680_000:  # the year 3000
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _row(item: Any) -> Row | None:
    """A listed task; its `safety_identifier` is the reference that we sent with it."""
    task_id = name(item.get("id")) if isinstance(item, Mapping) else None
    if task_id is None:
        return None
    reference, status = item.get("safety_identifier"), item.get("status")
    return Row(
        task_id,
        reference if isinstance(reference, str) and reference else None,
        _moment(item.get("created_at")),
        cleaned(status, 80) if isinstance(status, str) else "",
    )


def _page(document: Mapping[str, Any], answered: datetime | None) -> Page | Unlisted:
    items, total = document.get("items"), document.get("total")
    if not isinstance(items, list):
        return Unlisted("a list without items")
    rows = tuple(row for item in items if (row := _row(item)) is not None)
    if len(rows) < len(items):
        return Unlisted("the list holds something without an id")
    return Page(rows, total if isinstance(total, int) and not isinstance(total, bool) else None, answered)


class VolcengineArk:
    """Stateless; every call goes over the transport it is given."""

    key: Final = "ark"
    title: Final = "Volcengine Ark"
    statuses: Final = STATUSES
    error_table: Final = ERRORS
    capabilities: Final = AdapterCapabilities(
        asynchronous={"video": True, "image": False},
        recovery={"video": "client_reference", "image": "none"},
        cancel={"video": "queued_only", "image": "none"},
        callback_signature="own_token",
        # A picture may come as base64; of videos and sounds only addresses are documented.
        assets={"image": ("url", "inline"), "video": ("url",), "audio": ("url",)},
        output_url_lifetime_s=int(_OUTPUT_LIFETIME.total_seconds()),
        free_account_check=True,
    )
    config_schema: Final[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {**CALLBACK_CONFIG},
    }

    def compile(self, request: NormalizedRequest, supply: SupplyTarget) -> CompilePlan | CompileError:
        if request.get("modality") == "image":
            return compile_image(request, supply)
        return compile_video(request, supply)

    def submit(
        self,
        transport: Transport,
        plan: CompilePlan,
        client_request_key: str,
        before_send: Callable[[], None],
    ) -> SubmitOutcome:
        body = dict(plan.body)
        if plan.modality == "video":
            body["safety_identifier"] = client_request_key
            if call_us_at := callback_address(transport.access, client_request_key):
                body["callback_url"] = call_us_at
        headers = {**_authorization(transport), "X-Client-Request-Id": client_request_key}
        exchange = transport.post_once(plan.path, body, headers, before_send)
        if plan.modality == "video":
            return judge(exchange, PROTOCOL, _accepted_task)
        return judge(
            exchange,
            PROTOCOL,
            lambda document, request_id: _pictures(document, request_id, client_request_key),
        )

    def poll(self, transport: Transport, provider_job_id: str) -> PollResult:
        exchange = transport.ask("GET", _task_path(provider_job_id), _authorization(transport))
        document = _read(exchange)
        if isinstance(document, Unreadable):
            not_found = isinstance(exchange, Answer) and exchange.status == 404
            wait_s = retry_after_s(exchange) if isinstance(exchange, Answer) else None
            return PollFailure(not_found, wait_s, document.reason)
        if document.get("id") not in (None, provider_job_id):
            return PollFailure(False, None, "the answer is about another task")
        return _task_status(document)

    def cancel(self, transport: Transport, provider_job_id: str) -> CancelResult:
        """Looks first: deleting a task that has ended would erase its result."""
        now = self.poll(transport, provider_job_id)
        if isinstance(now, PollFailure):
            return CancelResult("not_found" if now.not_found else "failed", {"detail": now.detail})
        if now.status == "cancelled":
            return CancelResult("requested", now.raw)
        if now.status != "provider_queued":
            return CancelResult("too_late", now.raw)
        exchange = transport.ask("DELETE", _task_path(provider_job_id), _authorization(transport))
        return _cancelled(exchange)

    def recover(
        self,
        transport: Transport,
        client_request_key: str,
        request_hash: str,  # Ark lists nothing that it could be matched with
        supply: SupplyTarget,
        window: Window,
    ) -> RecoverResult:
        if supply.modality == "image":
            return CannotTell("Ark lists no images")
        result = look_up(client_request_key, window, lambda number: _list(transport, number))
        if supply.modality != "video" and not isinstance(result, Found):
            return CannotTell("the supply's modality was not given, and Ark lists videos only")
        return result

    def check(self, transport: Transport) -> CheckResult:
        exchange = transport.ask(
            "GET", TASKS, _authorization(transport), (("page_num", "1"), ("page_size", "1"))
        )
        document = _read(exchange)
        if isinstance(document, Unreadable):
            return CheckResult(False, error_in(exchange, PROTOCOL), document.reason)
        return CheckResult(True)

    def parse_callback(
        self,
        headers: Mapping[str, str],  # unsigned; the called address proves itself
        body: bytes,
        *,
        query: Mapping[str, str],
        access: ChannelAccess,
        now: datetime,
    ) -> CallbackEvent | CallbackInvalid:
        key = verified_key(query, access)
        if key is None:
            return CallbackInvalid("the address that was called carries no token of ours")
        task = read_document(body)
        if isinstance(task, Unreadable):
            return CallbackInvalid(task.reason)
        task_id = name(task.get("id"))
        if task_id is None:
            return CallbackInvalid("a task without an id")
        if not is_fresh(_moment(task.get("updated_at")), now):
            return CallbackInvalid("older than the replay window, or of no time at all")
        return CallbackEvent(event_id(body), task_id, _task_status(task), key)


def _authorization(transport: Transport) -> dict[str, str]:
    return {"Authorization": f"Bearer {transport.access.credential}"}


def _task_path(task_id: str) -> str:
    return f"{TASKS}/{quote(task_id, safe='')}"


def _list(transport: Transport, page: int) -> Page | Unlisted:
    """Every model's tasks: what `filter.model` compares with is not documented."""
    wanted = (("page_num", str(page)), ("page_size", str(_LIST_PAGE_ROWS)))
    exchange = transport.ask("GET", TASKS, _authorization(transport), wanted)
    document = _read(exchange)
    if isinstance(document, Unreadable):
        return Unlisted(document.reason)
    return _page(document, answered_at(exchange))


def _read(exchange: Exchange) -> Mapping[str, Any] | Unreadable:
    if isinstance(exchange, Broken):
        return Unreadable(f"{exchange.kind} while {exchange.phase}: {exchange.detail}")
    if exchange.status != 200:
        return Unreadable(f"status {exchange.status}")
    return read_document(exchange.body)


def _cancelled(exchange: Exchange) -> CancelResult:
    """No body on success. A refusal means that the task had begun by then."""
    if isinstance(exchange, Broken):
        return CancelResult("failed", {"detail": exchange.detail})
    if 200 <= exchange.status < 300:
        return CancelResult("requested", {"status": exchange.status})
    outcome = _CANCEL_REFUSALS.get(exchange.status, "failed")
    return CancelResult(outcome, error_in(exchange, PROTOCOL).as_json())


def _pictures(
    document: Mapping[str, Any], request_id: str | None, client_request_key: str
) -> Accepted | None:
    """The one picture; Ark gives the call no id, so it goes by ours."""
    data = document.get("data")
    made_at = _moment(document.get("created"))
    expires_at = made_at + _OUTPUT_LIFETIME if made_at else None
    urls = (
        [address(item.get("url")) for item in data if isinstance(item, Mapping)]
        if isinstance(data, list)
        else []
    )
    outputs = tuple(OutputLocator(url, "image", expires_at) for url in urls if url)
    if not outputs:
        return None
    return Accepted(
        f"image-{client_request_key}", request_id, "succeeded", outputs, redacted(document), _counts(document)
    )
