"""An installation with money in it: refusals, a degraded delivery, customers, prices to come, and changes."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from billing import ledger
from billing.ledger import ProviderCost, Settlement
from billing.models import ApiKey, CostRuleVersion, Customer
from billing.services.credit_customer import credit_customer
from billing.services.open_customer import open_customer
from billing.services.schedule_price import schedule_price
from catalog.audit import Actor
from catalog.models import AuditEntry, Supply
from dispatch.models import Job
from health.models import RefusalRecord
from health.services.lift_refusal import lift_refusal
from tests.factories import ApiKeyFactory, CustomerGroupFactory, JobFactory, SupplyFactory, succeeded_job

ZHAO = Actor("zhao.q", "console")
BY_POST = {
    "refusal_content",
    "lift_refusal",
    "create_customer",
    "limit_customer",
    "deposit_now",
    "issue_key",
    "revoke_key_now",
    "schedule_price",
    "cancel_price_now",
    "save_settings",
    "save_notifications",
    "save_roles",
}
MILLION = 1_000_000


@dataclass
class MoneyWorld:
    supply: Supply
    planned: CostRuleVersion
    customer: Customer
    key: ApiKey
    cooling: RefusalRecord
    frozen: RefusalRecord
    ended: RefusalRecord
    degraded: Job
    entry: AuditEntry
    person: User

    def pages(self) -> list[str]:
        price = f"/console/cost-rules/{self.supply.slug}/"
        return [
            "/console/refusals/",
            "/console/refusals/?state=ended&provider=nobody",
            f"/console/refusals/{self.cooling.public_id}/",
            f"/console/refusals/{self.frozen.public_id}/",
            "/console/degraded/",
            "/console/customers/",
            f"/console/customers/{self.customer.public_id}/",
            f"/console/customers/{self.customer.public_id}/deposit/?amount=100&note=invoice+7",
            "/console/ledger/",
            "/console/ledger/?book=providers",
            "/console/ledger/totals/?book=providers",
            "/console/cost-rules/",
            price,
            f"{price}new/",
            f"{price}review/?mode=per_second&currency=USD&unit=0.05&start=at&start_at=2031-05-05T00:00"
            "&free_on_failure=1",
            f"{price}review/?mode=per_second&currency=USD&unit=much&start=now",
            "/console/audit/",
            f"/console/audit/{self.entry.pk}/",
            "/console/settings/",
            f"/console/settings/users/{self.person.pk}/",
            "/console/help/routing/",
        ]

    def addresses(self) -> dict[str, str]:
        """One of every address, by name."""
        refusal = f"/console/refusals/{self.cooling.public_id}/"
        customer = f"/console/customers/{self.customer.public_id}/"
        key = f"{customer}keys/{self.key.public_id}/revoke/"
        price = f"/console/cost-rules/{self.supply.slug}/"
        cancel = f"{price}{self.planned.number}/cancel/"
        return {
            "refusals": "/console/refusals/",
            "refusal": refusal,
            "refusal_content": f"{refusal}content/",
            "lift_refusal": f"{refusal}lift/",
            "degraded": "/console/degraded/",
            "degraded_csv": "/console/degraded/export/",
            "customers": "/console/customers/",
            "new_customer": "/console/customers/new/",
            "create_customer": "/console/customers/new/create/",
            "customer": customer,
            "limit_customer": f"{customer}limits/",
            "deposit": f"{customer}deposit/",
            "deposit_now": f"{customer}deposit/now/",
            "issue_key": f"{customer}keys/",
            "revoke_key": key,
            "revoke_key_now": f"{key}now/",
            "ledger": "/console/ledger/",
            "ledger_totals": "/console/ledger/totals/",
            "ledger_csv": "/console/ledger/export/",
            "prices": "/console/cost-rules/",
            "price": price,
            "new_price": f"{price}new/",
            "review_price": f"{price}review/?mode=per_second&currency=USD&unit=0.07&start=now",
            "schedule_price": f"{price}schedule/",
            "cancel_price": cancel,
            "cancel_price_now": f"{cancel}now/",
            "audit": "/console/audit/",
            "audit_csv": "/console/audit/export/",
            "audit_entry": f"/console/audit/{self.entry.pk}/",
            "settings": "/console/settings/",
            "save_settings": "/console/settings/save/",
            "save_notifications": "/console/settings/notifications/",
            "user": f"/console/settings/users/{self.person.pk}/",
            "save_roles": f"/console/settings/users/{self.person.pk}/roles/",
            "help": "/console/help/routing/",
        }


def make_money_world() -> MoneyWorld:
    now = timezone.now()
    supply = Supply.objects.filter(slug="kestrel-hd").first() or SupplyFactory(slug="kestrel-hd")
    customer = open_customer("Northlight", "", "USD", actor=ZHAO, now=now - timedelta(days=3))
    credit_customer(customer, 250 * MILLION, "invoice 41", actor=ZHAO, now=now - timedelta(days=3))
    CustomerGroupFactory()
    key = ApiKeyFactory(customer=customer, name="render farm")
    delivered = succeeded_job(supply=supply, api_key=key, created_at=now - timedelta(hours=2))
    _booked(delivered, now - timedelta(hours=1, minutes=50))
    degraded = succeeded_job(supply=supply, api_key=key, created_at=now - timedelta(hours=1))
    Job.objects.filter(pk=degraded.pk).update(
        dropped_inputs=["reference_videos"],
        requested_profile="933",
        actual_profile="900",
        reserved_micros=400_000,
        charged_micros=300_000,
    )
    degraded.refresh_from_db()
    _booked(degraded, now - timedelta(minutes=50))
    planned = schedule_price(
        supply,
        {"mode": "per_second", "currency": "USD", "per_second": "0.0500"},
        now + timedelta(days=6, hours=12),
        actor=ZHAO,
        now=now - timedelta(hours=3),
    )
    cooling, frozen, ended = (_refused(number, delivered, now) for number in (1, 4, 2))
    lift_refusal(ended.pk, Actor("li.m", "console"), "the provider corrected its filter", now)
    ended.refresh_from_db()
    JobFactory(
        api_key=key,
        public_model=delivered.public_model,
        state="failed",
        error_code="content_refused",
        content_fingerprint=frozen.fingerprint,
        created_at=now - timedelta(hours=4),
    )
    person = User.objects.get_or_create(username="wang.l")[0]
    return MoneyWorld(
        supply=supply,
        planned=planned,
        customer=customer,
        key=key,
        cooling=cooling,
        frozen=frozen,
        ended=ended,
        degraded=degraded,
        entry=AuditEntry.objects.get(action="schedule price"),
        person=person,
    )


def _booked(job: Job, at: datetime) -> None:
    """What both books say of a delivered job."""
    attempt = job.adopted_attempt
    assert attempt is not None
    reserved = job.reserved_micros or 300_000
    ledger.reserve(job.customer, job.public_id, reserved, at)
    said = {"degraded": bool(job.dropped_inputs), "dropped_inputs": job.dropped_inputs}
    ended = Settlement(
        job.customer_id,
        job.customer.currency,
        job.public_id,
        reserved,
        job.charged_micros,
        "job succeeded",
        said,
    )
    ledger.settle_credit([ended], at)
    expected = ProviderCost(
        attempt.public_id, attempt.supply_id, attempt.cost_rule_version_id, 210_000, "USD"
    )
    ledger.expect_costs([expected], at)
    ledger.settle_costs([replace(expected, amount_micros=200_000)], at)


def _refused(times: int, job: Job, now: datetime) -> RefusalRecord:
    attempt = job.adopted_attempt
    assert attempt is not None
    refused_at = now - timedelta(minutes=5 * times)
    return RefusalRecord.objects.create(
        fingerprint=f"{times:064d}",
        provider=attempt.channel.provider,
        model_family=attempt.supply.model_family,
        versions={str(attempt.supply_id): "1"},
        refusals=times,
        refused_at=refused_at,
        last_refused_attempt=attempt.public_id,
        frozen_at=refused_at if times > 3 else None,
        created_at=now - timedelta(hours=8),
    )
