"""What selections are decided by, where there is nothing to read."""

import pytest

from catalog.models import SupplyBinding
from catalog.revision import bump_revision
from dispatch.selection_facts import read_statistics
from tests.engine import Engine
from tests.factories import NOW


@pytest.mark.django_db
def test_the_statistics_of_no_supply_are_none() -> None:
    assert read_statistics((), NOW) == {}


def test_a_model_whose_last_binding_was_closed_keeps_no_scan_from_its_end(engine: Engine) -> None:
    job = engine.job()
    SupplyBinding.objects.update(enabled=False)
    bump_revision()
    engine.step()
    assert engine.reload(job).state in ("queued", "failed")
