"""Customers, their keys, and what the console shows of one."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet
from django.http import QueryDict

from billing.models import ApiKey, CreditEntry, Customer, CustomerGroup
from catalog.models import AuditEntry
from dispatch.models import Job
from dispatch.queries.counting import capped

_SHOWN = 10  # of the newest lines and changes


@dataclass(frozen=True, slots=True)
class CustomerFilter:
    text: str = ""  # in the name
    group: str = ""  # slug
    inactive: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.group or self.inactive)


def parse_filter(query: QueryDict) -> CustomerFilter:
    return CustomerFilter(
        query.get("name", "").strip()[:120], query.get("group", "")[:60], query.get("inactive") == "1"
    )


def matching(wanted: CustomerFilter) -> QuerySet[Customer]:
    """With `live_keys`: how many of their keys are not revoked."""
    customers = Customer.objects.select_related("group").annotate(
        live_keys=Count("api_keys", filter=Q(api_keys__revoked_at=None))
    )
    if wanted.text:
        customers = customers.filter(name__icontains=wanted.text)
    if wanted.group:
        customers = customers.filter(group__slug=wanted.group)
    return customers.filter(active=not wanted.inactive)


def groups() -> list[CustomerGroup]:
    return list(CustomerGroup.objects.order_by("slug"))


@dataclass(frozen=True)
class CustomerNow:
    """`waiting` and `running`: jobs of this moment, capped."""

    keys: Sequence[ApiKey]
    lines: Sequence[CreditEntry]
    changes: Sequence[AuditEntry]
    waiting: int
    running: int


def find_customer(public_id: str) -> Customer | None:
    return Customer.objects.select_related("group").filter(public_id=public_id).first()


def customer_now(customer: Customer) -> CustomerNow:
    """Five queries."""
    open_jobs = Job.objects.filter(customer=customer)
    return CustomerNow(
        keys=list(customer.api_keys.order_by("-id")),
        lines=list(customer.credit_entries.order_by("-id")[:_SHOWN]),
        changes=list(
            AuditEntry.objects.filter(subject=f"customer:{customer.public_id}").order_by("-at", "-id")[
                :_SHOWN
            ]
        ),
        waiting=capped(open_jobs.filter(state="queued")),
        running=capped(
            open_jobs.filter(state__in=("dispatching", "running", "fetching_output", "cancel_requested"))
        ),
    )
