"""Which errors say something about a circuit, and about whose."""

import pytest

from catalog.providers import errors
from catalog.providers.errors import ErrorKind
from health.circuit import Kind
from health.effects import health_effect

NOTHING = [
    errors.INVALID_INPUT,
    errors.ASSET_UNAVAILABLE,
    errors.ASSET_INVALID,
    errors.SAFETY_INPUT,
    errors.SAFETY_OUTPUT,
    errors.REAL_PERSON,
    errors.UNSUPPORTED,
    errors.QUOTA,
    errors.NOT_CREATED,
    ErrorKind("supply", "supply", False, "output_expired"),
]
OF_SUPPLY = [
    errors.MODEL_NOT_FOUND,
    errors.RATE_LIMITED,
    errors.OVERLOADED,
    errors.INTERNAL_RETRYABLE,
    errors.INTERNAL_PERMANENT,
    errors.REDIRECT,
    ErrorKind("unknown", "attempt", False, "submission_unknown"),
]
OF_CHANNEL = [errors.AUTH, errors.PERMISSION, errors.BALANCE, errors.NETWORK]


def effect(kind: ErrorKind) -> tuple[Kind, str]:
    return health_effect(kind.category, kind.scope, kind.code)


@pytest.mark.parametrize("kind", NOTHING, ids=lambda kind: kind.code)
def test_an_error_of_content_request_or_calendar_is_nobodys_illness(kind: ErrorKind) -> None:
    assert effect(kind)[0] is Kind.NONE


@pytest.mark.parametrize("kind", OF_SUPPLY, ids=lambda kind: kind.code)
def test_an_error_of_the_model_or_its_stock_is_the_supplys(kind: ErrorKind) -> None:
    assert effect(kind) == (Kind.FAILURE, "supply")


@pytest.mark.parametrize("kind", OF_CHANNEL, ids=lambda kind: kind.code)
def test_an_error_of_the_account_or_the_way_there_is_the_channels(kind: ErrorKind) -> None:
    assert effect(kind) == (Kind.FAILURE, "channel")
