"""What comes late is booked once, and what can not be done now keeps nothing else from being done."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from billing.models import ProviderUsageEntry
from catalog.audit import Actor
from catalog.providers.types import Accepted
from dispatch.models import Asset, Attempt
from dispatch.services.decide_submission import provider_does_not_have_it
from dispatch.services.expire_outputs import expire_outputs
from dispatch.services.record_submission import record_submission
from health.models import Alert
from tests.dispatch.test_decide_submission import uncertain
from tests.engine import Engine


def test_an_answer_that_comes_after_an_operator_ruled_it_out_is_booked_as_our_loss_once(
    engine: Engine,
) -> None:
    attempt = uncertain(engine, "drop_before_response")
    provider_does_not_have_it(attempt.pk, "not in their console", Actor("li.m", "console"), engine.now)
    late = Attempt.objects.select_related("channel", "supply", "job", "policy", "cost_rule_version")
    for _ in range(2):
        record_submission(late.get(pk=attempt.pk), Accepted("cgt-late", None, "queued", ()), engine.now)
    assert Alert.objects.get(code="unmatched_charge").details["provider_job"] == "cgt-late"
    booked = ProviderUsageEntry.objects.get(attempt=attempt.public_id)
    assert (booked.amount_micros, booked.platform_loss) == (attempt.quote_micros, True)
    attempt.refresh_from_db()
    assert attempt.cost_micros == attempt.quote_micros
    engine.finish(attempt.job)
    assert engine.attempts(attempt.job) == ["failed", "succeeded"]
    assert attempt.job.charged_micros == attempt.job.reserved_micros, "the customer pays for one"


def test_an_output_that_can_not_be_removed_keeps_no_other_from_being(
    engine: Engine, settings: LazySettings, tmp_path: Path
) -> None:
    settings.MEDIA_DIR, settings.OUTPUT_RETENTION_DAYS = tmp_path, 1
    jobs = [engine.job(), engine.job()]
    engine.finish(*jobs)
    stuck, other = Asset.objects.order_by("expires_at", "pk")
    path = tmp_path / stuck.path
    path.unlink()
    path.mkdir()  # unlink() fails on it, as on a disk that is read-only there
    later = engine.now + timedelta(days=2)
    with pytest.raises(OSError, match=path.name):
        expire_outputs(later)
    other.refresh_from_db()
    stuck.refresh_from_db()
    assert (stuck.removed_at, other.removed_at) == (None, later)
    path.rmdir()
    assert expire_outputs(later) == 1, "and it is tried again"
