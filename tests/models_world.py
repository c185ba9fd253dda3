"""A public model as operators edit it, with three exact supplies, two fallback ones and a degraded one; and
another that was saved and is not published."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from catalog.audit import Actor
from catalog.facts import BindingFacts, ModelFacts
from catalog.models import Channel, PublicModel, Supply
from dispatch.models import Occupancy
from dispatch.services.edit_model import Typed, keep_working_copy
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
WANG = Actor("wang.l", "console")
BY_HAND = {"order": "manual_priority", "max_cost_micros": 30_000_000}
PRICES = {  # US dollars a second
    "kestrel-hd": "0.0424",
    "osprey-pro": "0.0396",
    "heron-v3": "0.0480",
    "wren-lite": "0.0180",
    "finch-one": "0.0210",
    "lark-mini": "0.0100",
}


@dataclass
class ModelsWorld:
    """`model` serves at revision 2; `other` is saved at revision 2 and was published at 1."""

    model: PublicModel
    other: PublicModel

    def pages(self) -> list[str]:
        """For everybody who is signed in by now, with one change kept."""
        for person in User.objects.all():
            self.edit_as(person)
        return [
            "/console/models/",
            BASE,
            f"{BASE}edit/",
            f"{BASE}edit/discard/",
            f"{BASE}review/",
            f"{BASE}revisions/",
            f"{BASE}revisions/1..2/",
            f"/console/models/{self.other.slug}/publish/",
            f"/console/simulator/?model={SLUG}&duration_s=5&health+kestrel-hd=circuit_open",
        ]

    def edit_as(self, person: User, typed: Mapping[str, str] | None = None) -> None:
        """Gives that person a working copy of the model, with one change or those given."""
        changes = typed or {"osprey-pro@exact:priority": "950000"}
        keep_working_copy(self.model, person, Typed(self.model.revision, changes), timezone.now())


def make_models_world() -> ModelsWorld:
    now = timezone.now()
    ago = now - timedelta(minutes=12)
    DispatchPolicyFactory(slug="by-hand", parameters=BY_HAND)
    DegradationRuleFactory(slug="933-to-900")
    for slug, price in PRICES.items():
        document = {"mode": "per_second", "currency": "USD", "per_second": price}
        channel = ChannelFactory(slug=f"{slug.partition('-')[0]}-main")
        SupplyFactory(slug=slug, channel=channel, price=document, concurrency=8)
    Channel.objects.update(credential="sealed")
    _make_conditions(ago)
    model = _open(_save(model_facts(900_000), None, ago, "first"), ago)
    model = _save(model_facts(910_000), model, ago, "give Kestrel more room")
    model = _open(model, ago + timedelta(minutes=1))
    other = _open(_save(other_facts(), None, ago, ""), ago)
    other = _save(other_facts("A newer text."), other, ago, "say it better")
    JobFactory(public_model=model, created_at=ago + timedelta(minutes=2))
    return ModelsWorld(model, other)


def _make_conditions(since: datetime) -> None:
    channels = {row.slug: row for row in Channel.objects.all()}
    ChannelHealthFactory(channel=channels["heron-main"], state="circuit_open", changed_at=since)
    ChannelHealthFactory(channel=channels["finch-main"], state="probing", changed_at=since)
    supplies = {row.slug: row for row in Supply.objects.all()}
    SupplyHealthFactory(
        supply=supplies["osprey-pro"], state="recovering", recovery_successes=3, changed_at=since
    )
    SupplyHealthFactory(supply=supplies["wren-lite"], state="degraded", changed_at=since)
    for slug, confirmed, unknown in (("kestrel-hd", 6, 1), ("osprey-pro", 2, 0), ("wren-lite", 3, 0)):
        Occupancy.objects.create(
            kind=Occupancy.Kind.SUPPLY, subject_id=supplies[slug].pk, confirmed=confirmed, unknown=unknown
        )


def model_facts(first: int) -> ModelFacts:
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


def other_facts(disclosure: str = "") -> ModelFacts:
    return ModelFacts(
        slug="vid-std",
        modality="video",
        display_name="Standard",
        parameters=VIDEO_CAPABILITY,
        policy="by-hand",
        disclosure=disclosure,
        example_requests=({"prompt": "A lighthouse", "duration_s": 5},),
        bindings=(BindingFacts("kestrel-hd", "exact", 1),),
    )


def _save(facts: ModelFacts, model: PublicModel | None, at: datetime, note: str) -> PublicModel:
    expected = model.revision if model else None
    return save_model(facts, expected_revision=expected, actor=WANG, now=at, note=note)


def _open(model: PublicModel, at: datetime) -> PublicModel:
    result = publish(model, actor=WANG, now=at)
    assert isinstance(result, Published), [str(gate) for gate in result.gates]
    return result.model
