"""The clock of a simulating process: `django.utils.timezone.now` before anybody imports it."""

from collections.abc import Callable
from datetime import UTC, datetime

from django.utils import timezone

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
read: Callable[[], datetime] = lambda: START  # noqa: E731 - replaced by the scheduler's clock


def install() -> None:
    """Every later `from django.utils.timezone import now` gets ours."""
    timezone.now = lambda: read()
