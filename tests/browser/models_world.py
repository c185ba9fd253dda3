"""A public model as operators edit it: three exact supplies, two fallback ones and a degraded one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from catalog.audit import Actor
from catalog.facts import BindingFacts, ModelFacts
from catalog.models import Channel, DispatchPolicy, PublicModel
from dispatch.models import Occupancy, SelectionRound
from dispatch.services.edit_model import keep_working_copy
from dispatch.services.publish import Published, publish
from dispatch.services.save_model import save_model
from tests.factories import (
    VIDEO_CAPABILITY,
    ChannelFactory,
    ChannelHealthFactory,
    DegradationRuleFactory,
    DispatchPolicyFactory,
    JobFactory,
    SupplyFactory,
    SupplyHealthFactory,
)

SLUG = "vid-hd-5s"
BASE = f"/console/models/{SLUG}/"
ALICE = Actor("wang.l", "console")


@dataclass
class ModelsWorld:
    model: PublicModel
    other: PublicModel

    def pages(self) -> list[str]:
        return [
            "/console/models/",
            BASE,
            f"{BASE}edit/",
            f"{BASE}review/",
            f"{BASE}publish/",
            f"{BASE}revisions/",
            f"{BASE}revisions/1..2/",
            f"{BASE}withdraw/",
            f"/console/models/{self.other.slug}/publish/",
            "/console/simulator/",
            f"/console/simulator/?model={SLUG}&duration_s=5&health+kestrel-hd=circuit_open",
        ]

    def edit_as(self, name: str, typed: Mapping[str, str] | None = None) -> None:
        """Gives that person a working copy with one change."""
        changes = typed or {"osprey-pro@exact:priority": "950000"}
        self.model.refresh_from_db()
        person = User.objects.get(username=name)
        keep_working_copy(self.model, person, self.model.revision, changes, timezone.now())


@pytest.fixture
def models_world(transactional_db: None) -> ModelsWorld:
    return make_models_world()


def make_models_world() -> ModelsWorld:
    now = timezone.now()
    ago = now - timedelta(minutes=12)
    DispatchPolicyFactory(slug="by-hand", parameters={"order": "manual_priority", "max_cost_micros": 30_000_000})
    DegradationRuleFactory(slug="933-to-900")
    prices = {
        "kestrel-hd": "0.0424", "osprey-pro": "0.0396", "heron-v3": "0.0480",
        "wren-lite": "0.0180", "finch-one": "0.0210", "lark-mini": "0.0100",
    }  # fmt: skip
    for slug, price in prices.items():
        document = {"mode": "per_second", "currency": "USD", "per_second": price}
        SupplyFactory(
            slug=slug, channel=ChannelFactory(slug=f"{slug.split('-')[0]}-main"), price=document, concurrency=8
        )
    Channel.objects.update(credential="sealed")
    channels = {row.slug: row for row in Channel.objects.all()}
    ChannelHealthFactory(channel=channels["heron-main"], state="circuit_open", changed_at=ago)
    ChannelHealthFactory(channel=channels["finch-main"], state="probing", changed_at=ago)
    supplies = {row.slug: row for row in _supplies()}
    SupplyHealthFactory(supply=supplies["osprey-pro"], state="recovering", recovery_successes=3, changed_at=ago)
    SupplyHealthFactory(supply=supplies["wren-lite"], state="degraded", changed_at=ago)
    for slug, confirmed, unknown in (("kestrel-hd", 6, 1), ("osprey-pro", 2, 0), ("wren-lite", 3, 0)):
        Occupancy.objects.create(
            kind=Occupancy.Kind.SUPPLY, subject_id=supplies[slug].pk, confirmed=confirmed, unknown=unknown
        )
    model = _published(_facts(900_000), ago)
    model = _saved(_facts(910_000), model, ago, "give Kestrel more room")
    model = _opened(model, ago + timedelta(minutes=1))
    other = _saved(_other(), None, ago, "")
    _opened(other, ago)
    save_model(_other("A newer text."), expected_revision=1, actor=ALICE, now=ago, note="say it better")
    JobFactory(public_model=model, created_at=ago + timedelta(minutes=2))
    return ModelsWorld(model, PublicModel.objects.get(pk=other.pk))


def _supplies() -> list:  # type: ignore[type-arg]
    from catalog.models import Supply

    return list(Supply.objects.all())


def _facts(first: int) -> ModelFacts:
    return ModelFacts(
        slug=SLUG,
        modality="video",
        display_name="Video HD, 5 s",
        parameters=VIDEO_CAPABILITY,
        policy="by-hand",
        profile="933",
        disclosure="Reference videos and sounds may be left out.",
        degradation="best_effort",
        example_requests=({"prompt": "A lighthouse", "duration_s": 5, "resolution": "720p"},),
        bindings=(
            BindingFacts("kestrel-hd", "exact", first),
            BindingFacts("osprey-pro", "exact", 700_000),
            BindingFacts("heron-v3", "exact", 400_000),
            BindingFacts("wren-lite", "fallback", 500_000),
            BindingFacts("finch-one", "fallback", 300_000),
            BindingFacts("lark-mini", "degraded", 0, rule="933-to-900"),
        ),
    )


def _other(disclosure: str = "") -> ModelFacts:
    return ModelFacts(
        slug="img-std",
        modality="video",
        display_name="Standard",
        parameters=VIDEO_CAPABILITY,
        policy="by-hand",
        disclosure=disclosure,
        example_requests=({"prompt": "A lighthouse", "duration_s": 5},),
        bindings=(BindingFacts("kestrel-hd", "exact", 1),),
    )


def _saved(facts: ModelFacts, model: PublicModel | None, at, note: str) -> PublicModel:  # type: ignore[no-untyped-def]
    expected = model.revision if model else None
    return save_model(facts, expected_revision=expected, actor=ALICE, now=at, note=note)


def _opened(model: PublicModel, at) -> PublicModel:  # type: ignore[no-untyped-def]
    result = publish(model, actor=ALICE, now=at)
    assert isinstance(result, Published), [str(gate) for gate in result.failed]
    return result.model


def _published(facts: ModelFacts, at) -> PublicModel:  # type: ignore[no-untyped-def]
    return _opened(_saved(facts, None, at, "first"), at)
