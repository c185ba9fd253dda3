"""An operator gives a customer a key; `issue_key` is for demos and others that make theirs again."""

from datetime import datetime

from django.db import transaction

from billing.keys import NewKey
from billing.models import ApiKey, Customer
from billing.services.issue_key import issue_key
from catalog.audit import Actor, Change, record


@transaction.atomic
def hand_out_key(
    customer: Customer, name: str, scopes: tuple[str, ...], *, actor: Actor, now: datetime
) -> tuple[ApiKey, NewKey]:
    """The stored row, and the key with its secret, to be shown once. Raises ValueError for a scope that no
    key can have."""
    row, key = issue_key(customer, name=name, scopes=scopes)
    after = {"customer": customer.name, "key": str(row), "name": name, "scopes": list(scopes)}
    record(actor, Change("issue api key", f"api_key:{row.public_id}", after=after), now)
    return row, key
