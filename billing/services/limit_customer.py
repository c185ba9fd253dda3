"""What a customer may have at once, its share of the queue, its group, and whether it may ask at all."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from zlib import crc32

from django.db import transaction

from billing.models import Customer, CustomerGroup
from billing.priorities import parse_priorities
from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.revision import expect_revision

MOST_JOBS: Final = 10_000_000
MOST_WEIGHT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """`group` is a slug or ""; `priorities` as billing.priorities takes them."""

    max_in_flight: int
    max_queued: int
    weight: int
    group: str
    active: bool
    priorities: dict[str, int]


def limits_of(customer: Customer) -> Limits:
    return Limits(
        customer.max_in_flight,
        customer.max_queued,
        customer.weight,
        customer.group.slug if customer.group else "",
        customer.active,
        dict(customer.project_priorities),
    )


def fingerprint(limits: Limits) -> int:
    """Tells whether the limits that somebody looked at are those that are stored."""
    return crc32(repr(limits).encode())


@transaction.atomic
def limit_customer(
    customer: Customer, wished: Limits, *, actor: Actor, now: datetime, expected: int | None = None
) -> bool:
    """For jobs that come from now on; False where nothing differs. Raises CatalogueError or PriorityError for
    a value that cannot be, StaleRevision where the fingerprint `expected` is not of what is stored."""
    _check(wished)
    # Not of the row with its group: a lock cannot take the nullable side of a join.
    row = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    before = limits_of(row)
    if expected is not None:
        expect_revision(f"customer {row.name}", expected, fingerprint(before))
    if before == wished:
        return False
    row.max_in_flight, row.max_queued, row.weight = wished.max_in_flight, wished.max_queued, wished.weight
    row.group = CustomerGroup.objects.get(slug=wished.group) if wished.group else None
    row.active, row.project_priorities = wished.active, wished.priorities
    row.save(update_fields=["max_in_flight", "max_queued", "weight", "group", "active", "project_priorities"])
    subject = f"customer:{row.public_id}"
    record(actor, Change("limit customer", subject, *_changed(before, wished)), now)
    return True


def _check(wished: Limits) -> None:
    for name, least, most in (
        ("max_in_flight", 0, MOST_JOBS),
        ("max_queued", 0, MOST_JOBS),
        ("weight", 1, MOST_WEIGHT),
    ):
        if not least <= getattr(wished, name) <= most:
            raise CatalogueError(name, f"must be from {least} to {most}")
    if wished.group and not CustomerGroup.objects.filter(slug=wished.group).exists():
        raise CatalogueError("group", f"there is no group {wished.group!r}")
    parse_priorities(wished.priorities)


def _changed(before: Limits, after: Limits) -> tuple[dict[str, Any], dict[str, Any]]:
    old, new = asdict(before), asdict(after)
    return (
        {name: value for name, value in old.items() if value != new[name]},
        {name: value for name, value in new.items() if value != old[name]},
    )
