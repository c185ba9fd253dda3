"""Providers' error words → ours, by table. A word that no table holds is never guessed: it is
`supply/internal_permanent`, not retryable, and what was said is kept for the operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.providers.redaction import cleaned
from catalog.providers.types import Category, ErrorCode, ProviderError, Scope


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """What a word means. `refuses`: whatever status carries it, it proves that no job was created."""

    category: Category
    scope: Scope
    retryable: bool
    code: ErrorCode
    refuses: bool = False


# Each normalized error, once; the tables of the adapters point here.
INVALID_INPUT = ErrorKind("request", "request", False, "invalid_input", refuses=True)
ASSET_UNAVAILABLE = ErrorKind("request", "request", False, "asset_unavailable", refuses=True)
ASSET_INVALID = ErrorKind("request", "request", False, "asset_invalid", refuses=True)
SAFETY_INPUT = ErrorKind("content", "request", False, "safety_input", refuses=True)
SAFETY_OUTPUT = ErrorKind("content", "request", False, "safety_output", refuses=True)
REAL_PERSON = ErrorKind("content", "request", False, "real_person_policy", refuses=True)
UNSUPPORTED = ErrorKind("supply", "supply", True, "unsupported_capability", refuses=True)
MODEL_NOT_FOUND = ErrorKind("supply", "supply", True, "model_not_found", refuses=True)
AUTH = ErrorKind("supply", "channel", True, "auth", refuses=True)
PERMISSION = ErrorKind("supply", "channel", True, "permission", refuses=True)
BALANCE = ErrorKind("supply", "channel", True, "balance", refuses=True)
QUOTA = ErrorKind("capacity", "supply", True, "quota", refuses=True)
RATE_LIMITED = ErrorKind("capacity", "supply", True, "rate_limited")
OVERLOADED = ErrorKind("capacity", "supply", True, "overloaded")
INTERNAL_RETRYABLE = ErrorKind("supply", "supply", True, "internal_retryable")
INTERNAL_PERMANENT = ErrorKind("supply", "supply", False, "internal_permanent")
NETWORK = ErrorKind("supply", "channel", True, "network")
REDIRECT = ErrorKind("supply", "supply", True, "unexpected_redirect")
NOT_CREATED = ErrorKind("capacity", "supply", True, "not_created")


@dataclass(frozen=True, slots=True)
class Wording:
    """A provider's error in its documented form."""

    code: str
    message: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)  # redacted


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """`codes` are whole words; `families` those that a dot and anything may follow, as documented."""

    codes: Mapping[str, ErrorKind]
    families: Mapping[str, ErrorKind] = field(default_factory=dict)

    def kind_of(self, code: str) -> ErrorKind | None:
        code = code.strip()
        return self.codes.get(code) or self.families.get(code.partition(".")[0])

    def classify(self, wording: Wording, retry_after_s: float | None = None) -> ProviderError:
        kind = self.kind_of(wording.code) or INTERNAL_PERMANENT
        message = f"{wording.code}: {wording.message}" if wording.message else wording.code
        return error_of(kind, message, wording.code, wording.raw, retry_after_s)


def error_of(
    kind: ErrorKind,
    message: str,
    raw_status: str = "",
    raw: Mapping[str, Any] | None = None,
    retry_after_s: float | None = None,
) -> ProviderError:
    return ProviderError(
        kind.category,
        kind.scope,
        kind.retryable,
        kind.code,
        cleaned(message, 500),
        retry_after_s,
        cleaned(raw_status, 80),
        raw or {},
    )
