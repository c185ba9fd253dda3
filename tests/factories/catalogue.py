"""What exists: channels, supplies, models, prices."""

from datetime import timedelta

import factory

from billing import models as billing
from catalog import models as catalog
from catalog.hashing import document_hash
from tests.factories.rows import IMAGE_CAPABILITY, NOW, VIDEO_CAPABILITY, Rows


class CapacityGroupFactory(Rows[catalog.CapacityGroup]):
    class Meta:
        model = catalog.CapacityGroup

    endpoint = "https://ark.example.com:443/api/v3"
    account = factory.Sequence(lambda n: f"account-{n}")
    capacity = 10


class ChannelFactory(Rows[catalog.Channel]):
    class Meta:
        model = catalog.Channel

    slug = factory.Sequence(lambda n: f"channel-{n}")
    provider = "ark"
    region = "cn-beijing"
    base_url = "https://ark.example.com/api/v3"
    account = factory.LazyAttribute(lambda o: f"account of {o.slug}")
    concurrency = 10


class SupplyFactory(Rows[catalog.Supply]):
    """A supply with a capability version and a price in force since a month before NOW."""

    class Meta:
        model = catalog.Supply
        skip_postgeneration_save = True

    class Params:
        image = factory.Trait(modality="image", real_person_policy="")

    slug = factory.Sequence(lambda n: f"supply-{n}")
    channel = factory.SubFactory(ChannelFactory)
    modality = "video"
    provider_model = "doubao-seedance-2-0"
    model_family = "seedance"
    model_version = "2.0"
    concurrency = 10
    real_person_policy = "allowed"

    @factory.post_generation
    def capability(self: catalog.Supply, _create: bool, extracted: dict | None, **_: object) -> None:
        """Its published document: given, or a wide default of its modality."""
        default = VIDEO_CAPABILITY if self.modality == "video" else IMAGE_CAPABILITY
        self.capability_version = CapabilityVersionFactory(supply=self, document=extracted or default)
        self.save(update_fields=["capability_version"])

    @factory.post_generation
    def price(self: catalog.Supply, _create: bool, extracted: dict | bool | None, **_: object) -> None:
        """Its cost document: given, or a default of its modality; False for none."""
        if extracted is not False:
            mode = "per_second" if self.modality == "video" else "per_request"
            document = extracted or {"mode": mode, "currency": "USD", mode: "0.04"}
            CostRuleVersionFactory(rule__supply=self, document=document)


class CapabilityVersionFactory(Rows[catalog.CapabilityVersion]):
    class Meta:
        model = catalog.CapabilityVersion

    supply = factory.SubFactory(SupplyFactory)
    label = factory.Sequence(lambda n: f"v{n}")
    document = factory.LazyFunction(lambda: dict(VIDEO_CAPABILITY))
    document_hash = factory.LazyAttribute(lambda o: document_hash(o.document))
    effective_from = NOW - timedelta(days=30)
    published_by = "command:catalogue import"
    published_at = NOW - timedelta(days=30)


class DispatchPolicyFactory(Rows[catalog.DispatchPolicy]):
    class Meta:
        model = catalog.DispatchPolicy

    slug = factory.Sequence(lambda n: f"policy-{n}")
    version = 1
    parameters = factory.LazyFunction(lambda: {"order": "stable_first"})
    created_at = NOW - timedelta(days=30)
    created_by = "command:catalogue import"


class DegradationRuleFactory(Rows[catalog.DegradationRule]):
    class Meta:
        model = catalog.DegradationRule

    slug = factory.Sequence(lambda n: f"rule-{n}")
    from_profile = "933"
    to_profile = "900"
    drop_inputs = factory.LazyFunction(lambda: ["reference_videos", "reference_audios"])
    verified_at = NOW - timedelta(days=20)
    published_at = NOW - timedelta(days=20)


class PublicModelFactory(Rows[catalog.PublicModel]):
    """A model that serves: enabled, and published at its revision."""

    class Meta:
        model = catalog.PublicModel

    class Params:
        image = factory.Trait(modality="image", profile="", parameters=IMAGE_CAPABILITY)

    slug = factory.Sequence(lambda n: f"model-{n}")
    modality = "video"
    profile = "933"
    display_name = factory.LazyAttribute(lambda o: o.slug)
    parameters = factory.LazyFunction(lambda: dict(VIDEO_CAPABILITY))
    policy = factory.SubFactory(DispatchPolicyFactory)
    enabled = True
    published = True
    revision = 1
    published_revision = factory.LazyAttribute(lambda o: o.revision if o.published else None)


class SupplyBindingFactory(Rows[catalog.SupplyBinding]):
    class Meta:
        model = catalog.SupplyBinding

    class Params:
        degraded = factory.Trait(tier="degraded", degradation_rule=factory.SubFactory(DegradationRuleFactory))

    public_model = factory.SubFactory(PublicModelFactory)
    supply = factory.SubFactory(SupplyFactory)
    tier = "exact"


class CostRuleFactory(Rows[billing.CostRule]):
    class Meta:
        model = billing.CostRule
        django_get_or_create = ("supply",)

    supply = factory.SubFactory(SupplyFactory, price=False)


class CostRuleVersionFactory(Rows[billing.CostRuleVersion]):
    class Meta:
        model = billing.CostRuleVersion

    rule = factory.SubFactory(CostRuleFactory)
    number = 1
    mode = factory.LazyAttribute(lambda o: o.document["mode"])
    currency = factory.LazyAttribute(lambda o: o.document["currency"])
    document = factory.LazyFunction(lambda: {"mode": "per_second", "currency": "USD", "per_second": "0.04"})
    document_hash = factory.LazyAttribute(lambda o: document_hash(o.document))
    effective_from = NOW - timedelta(days=30)
    published_by = "command:catalogue import"
    published_at = NOW - timedelta(days=30)
