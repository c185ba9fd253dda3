"""Publishes a public model: the nine gates and the opening in one transaction, or nothing."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from catalog.audit import Actor, Change, record
from catalog.models import PublicModel
from catalog.revision import bump_revision, expect_revision, lock_revision
from dispatch.gate_evidence import gather
from dispatch.gates import Gate, judge
from dispatch.models import RefusedMeanwhile
from dispatch.services.advance import wake_dispatcher
from dispatch.services.begin_publication_watch import begin_publication_watch


@dataclass(frozen=True, slots=True)
class Published:
    """The model serves at `model.revision`."""

    model: PublicModel
    gates: list[Gate]


@dataclass(frozen=True, slots=True)
class GateReport:
    """Not published: at least one gate is shut."""

    model: PublicModel
    gates: list[Gate]

    @property
    def failed(self) -> list[Gate]:
        return [gate for gate in self.gates if not gate.passed]


@transaction.atomic
def publish(
    model: PublicModel, *, actor: Actor, now: datetime, expected_revision: int | None = None
) -> Published | GateReport:
    """Opens the model at its present revision if every gate lets it. Raises StaleRevision where
    `expected_revision` is given and somebody saved meanwhile. See docs: the operator's console."""
    lock_revision()
    row = (
        PublicModel.objects.select_related("policy")
        .select_for_update(of=("self",), no_key=True)
        .get(pk=model.pk)
    )
    expect_revision(f"public model {row.slug}", expected_revision or row.revision, row.revision)
    gates = judge(gather(row, now))
    if not all(gate.passed for gate in gates):
        return GateReport(row, gates)
    if not (row.enabled and row.published):
        _open(row, actor, now)
    return Published(row, gates)


def review(model: PublicModel, now: datetime) -> list[Gate]:
    """The gates as they would be found now; changes nothing."""
    return judge(gather(model, now))


def _open(row: PublicModel, actor: Actor, now: datetime) -> None:
    before, served_before = _publication(row), row.published_revision
    row.enabled = row.published = True
    row.published_revision = row.revision
    row.save(update_fields=["enabled", "published", "published_revision", "updated_at"])
    RefusedMeanwhile.objects.filter(public_model=row).delete()
    record(actor, Change("publish model", f"model:{row.public_id}", before, _publication(row)), now)
    begin_publication_watch(row, served_before, actor.name, now)
    bump_revision()
    wake_dispatcher()  # for what waited for it


def _publication(row: PublicModel) -> dict[str, object]:
    return {"enabled": row.enabled, "published": row.published, "published_revision": row.published_revision}
