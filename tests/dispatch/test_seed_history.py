"""Past work by the command: as service would have left it, and never among real jobs unasked."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Exists, Model, OuterRef, Sum

from billing.models import CreditEntry, Customer, ProviderUsageEntry
from config.history_rows import IN_ORDER
from dispatch.invariants import violations
from dispatch.models import Attempt, Job, Occupancy
from dispatch.routing.explain import explain
from tests.console import SignIn
from tests.factories import JobFactory
from tests.models_world import make_models_world


def seed(**options: object) -> str:
    said = StringIO()
    call_command("seed_history", stdout=said, **options)
    return said.getvalue()


def _broken_keys(model: type[Model]) -> list[str]:
    """Foreign keys that lead nowhere: they are not checked while past work is written."""
    keys = [field for field in model._meta.concrete_fields if field.is_relation]
    missing = {
        f"{model.__name__}.{field.name}": model._default_manager.exclude(**{field.attname: None}).filter(
            ~Exists(field.related_model._default_manager.filter(pk=OuterRef(field.attname)))
        )
        for field in keys
    }
    return [name for name, rows in missing.items() if rows.exists()]


@pytest.mark.django_db(transaction=True)
def test_past_work_keeps_every_invariant_and_can_be_looked_at(sign_in: SignIn) -> None:
    make_models_world()
    Job.objects.all().delete()
    Occupancy.objects.all().delete()  # which nobody holds
    assert "600 jobs in" in seed(jobs=600, days=40)
    assert violations() == []
    assert [field for rows in IN_ORDER for field in _broken_keys(rows.model)] == []
    states = set(Job.objects.values_list("state", flat=True))
    assert states == {"succeeded", "failed", "cancelled", "expired"}
    assert Job.objects.exclude(dropped_inputs=[]).exists()
    first, last = (Job.objects.order_by(way).first() for way in ("created_at", "-created_at"))
    assert first is not None
    assert last is not None
    assert (last.created_at - first.created_at).days >= 38
    switched = Attempt.objects.filter(number=2).select_related("job", "selection_round").first()
    assert switched is not None
    assert explain(switched.selection_round.snapshot).candidates == 6
    usage = ProviderUsageEntry.objects.aggregate(micros=Sum("amount_micros"))["micros"]
    assert usage == Attempt.objects.aggregate(micros=Sum("cost_micros"))["micros"] > 0
    assert Customer.objects.filter(balance_micros__lt=0).count() == 0
    assert CreditEntry.objects.filter(kind="deposit").exists()
    client = sign_in("viewer")
    for address in (
        "/console/",
        "/console/jobs/",
        f"/console/jobs/{switched.job.public_id}/",
        f"/console/jobs/{switched.job.public_id}/rounds/2/",
        "/console/ledger/?book=providers",
    ):
        assert client.get(address).status_code == 200, address
    seed(jobs=10, days=1)
    assert Job.objects.count() == 610
    assert violations() == []


@pytest.mark.django_db(transaction=True)
def test_an_installation_with_jobs_of_customers_is_refused_unless_told() -> None:
    with pytest.raises(CommandError, match="Import a catalogue first"):
        seed(jobs=1)
    make_models_world()
    JobFactory()
    with pytest.raises(CommandError, match="--among-real-jobs"):
        seed(jobs=1)
    assert "1 jobs in" in seed(jobs=1, among_real_jobs=True)
    with pytest.raises(CommandError, match="at least 1"):
        seed(jobs=0)
