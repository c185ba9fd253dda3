"""An operator makes a customer; `create_customer` is for commands that may be repeated."""

from datetime import datetime

from django.db import transaction

from billing.models import Customer
from billing.services.create_customer import create_customer
from catalog.audit import Actor, Change, record
from catalog.currency import is_currency
from catalog.exceptions import CatalogueError


@transaction.atomic
def open_customer(name: str, group: str, currency: str, *, actor: Actor, now: datetime) -> Customer:
    """Without credit and without a key. Raises CatalogueError for a name that is empty or taken, or a
    currency that is no three-letter code."""
    if not name:
        raise CatalogueError("name", "a customer needs a name")
    if Customer.objects.filter(name=name).exists():
        raise CatalogueError("name", f"there is a customer {name!r} already")
    if not is_currency(currency):
        raise CatalogueError("currency", f"{currency!r} is not a three-letter code such as USD")
    customer = create_customer(name, now, group=group, currency=currency)
    after = {"name": name, "group": group, "currency": currency}
    record(actor, Change("create customer", f"customer:{customer.public_id}", after=after), now)
    return customer
