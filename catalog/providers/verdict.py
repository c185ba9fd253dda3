"""Accepted, rejected or unknown: what one exchange proves about a submission.

The same for every provider; a protocol only says how its own answers are read. Where an answer proves
nothing the verdict is `Unknown`, and nobody posts again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from catalog.providers import errors
from catalog.providers.documents import Unreadable, name, read_document
from catalog.providers.errors import ErrorTable, Wording
from catalog.providers.http import Answer, Broken, Exchange
from catalog.providers.redaction import cleaned, redacted
from catalog.providers.types import Accepted, ProviderError, Rejected, SubmitOutcome, Unknown

REDIRECTS = frozenset({300, 301, 302, 303, 305, 307, 308})
# Statuses that no server gives after having done the work, even in a form the provider does not document.
REFUSALS = frozenset({401, 403, 404, 405, 413, 415, 422, 429})
_LONGEST_RETRY_AFTER_S = 24 * 3600.0
_SHOWN_BYTES = 500


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a provider's answers are read."""

    errors: ErrorTable
    # The documented form of an error, redacted; None where the document is no such thing.
    wording: Callable[[Mapping[str, Any]], Wording | None]
    request_id_header: str
    proves_absence: frozenset[int] = frozenset()  # 5xx statuses


type Acceptance = Callable[[Mapping[str, Any], str | None], Accepted | None]


def judge(exchange: Exchange, protocol: Protocol, accepted: Acceptance) -> SubmitOutcome:
    """`accepted` reads a 2xx document with the provider's request id; None where it holds no job."""
    if isinstance(exchange, Broken):
        return _judge_broken(exchange, protocol)
    request_id = request_id_of(exchange.headers, protocol)
    if 200 <= exchange.status < 300:
        return _judge_success(exchange, protocol, accepted, request_id)
    if exchange.status in REDIRECTS:
        return Rejected(_redirect(exchange), "body", request_id)
    return _judge_refusal(exchange, protocol, request_id)


def _judge_broken(broken: Broken, protocol: Protocol) -> SubmitOutcome:
    if not broken.proved_unsent:
        detail = f"{broken.kind} while {broken.phase}: {broken.detail}"
        return Unknown(broken.phase, detail, request_id_of(broken.headers, protocol), _status(broken.status))
    kind = errors.NOT_CREATED if broken.kind == "forbidden" else errors.NETWORK
    return Rejected(errors.error_of(kind, f"{broken.kind}: {broken.detail}"), broken.phase)


def _judge_success(
    answer: Answer, protocol: Protocol, accepted: Acceptance, request_id: str | None
) -> SubmitOutcome:
    document = read_document(answer.body)
    if isinstance(document, Unreadable):
        return Unknown("body", document.reason, request_id, _shown(answer))
    outcome = accepted(document, request_id)
    if outcome is not None:
        return outcome
    wording = protocol.wording(document)
    if wording is not None and _refuses(wording, protocol):
        return Rejected(protocol.errors.classify(wording, retry_after_s(answer)), "body", request_id)
    return Unknown("body", "no job in the answer", request_id, redacted(document))


def _judge_refusal(answer: Answer, protocol: Protocol, request_id: str | None) -> SubmitOutcome:
    document = read_document(answer.body)
    wording = None if isinstance(document, Unreadable) else protocol.wording(document)
    if wording is not None and (_is_refusal(answer.status, protocol) or _refuses(wording, protocol)):
        return Rejected(protocol.errors.classify(wording, retry_after_s(answer)), "body", request_id)
    if answer.status in REFUSALS or answer.status in protocol.proves_absence:
        return Rejected(_unknown_wording(answer), "body", request_id)
    return Unknown("body", f"status {answer.status} proves nothing", request_id, _shown(answer))


def error_in(exchange: Exchange, protocol: Protocol) -> ProviderError:
    """What went wrong with a call that spends nothing."""
    if isinstance(exchange, Broken):
        return errors.error_of(errors.NETWORK, f"{exchange.kind} while {exchange.phase}: {exchange.detail}")
    document = read_document(exchange.body)
    wording = None if isinstance(document, Unreadable) else protocol.wording(document)
    if wording is not None:
        return protocol.errors.classify(wording, retry_after_s(exchange))
    return _redirect(exchange) if exchange.status in REDIRECTS else _unknown_wording(exchange)


def _is_refusal(status: int, protocol: Protocol) -> bool:
    return 400 <= status < 500 or status in protocol.proves_absence


def _refuses(wording: Wording, protocol: Protocol) -> bool:
    kind = protocol.errors.kind_of(wording.code)
    return kind is not None and kind.refuses


def _redirect(answer: Answer) -> ProviderError:
    target = redacted({"location": answer.headers.get("location", "")})
    message = f"status {answer.status} instead of an answer; not followed with the credential"
    return errors.error_of(errors.REDIRECT, message, str(answer.status), target)


def _unknown_wording(answer: Answer) -> ProviderError:
    message = f"status {answer.status} in a form that the provider does not document"
    return errors.error_of(
        errors.INTERNAL_PERMANENT, message, str(answer.status), _shown(answer), retry_after_s(answer)
    )


def request_id_of(headers: Mapping[str, str], protocol: Protocol) -> str | None:
    named = name(headers.get(protocol.request_id_header))
    return named[:120] if named else None


def _status(status: int | None) -> dict[str, Any]:
    return {} if status is None else {"status": status}


def _shown(answer: Answer) -> dict[str, Any]:
    """The beginning of a body that could not be read; the provider's own words, so no prompt is expected."""
    return {"status": answer.status, "body": cleaned(answer.body[:_SHOWN_BYTES].decode("utf-8", "replace"))}


def retry_after_s(answer: Answer) -> float | None:
    """`Retry-After` in seconds, at most a day; a date counts from the answer's own `Date`."""
    written = answer.headers.get("retry-after", "").strip()
    try:
        seconds = float(written) if written.isascii() and written.isdecimal() else _until(written, answer)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)


def answered_at(exchange: Exchange) -> datetime | None:
    """When it was sent by the provider's own clock, to the second; None where its `Date` does not say."""
    try:
        return _aware(parsedate_to_datetime(exchange.headers["date"]))
    except (KeyError, ValueError):
        return None


def _until(written: str, answer: Answer) -> float:
    now = answered_at(answer) or datetime.now(UTC)
    return (_aware(parsedate_to_datetime(written)) - now).total_seconds()


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
