"""Sets how much of one currency another is worth, from now on."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction

from billing.models import CurrencyRateVersion
from billing.repository import rates_in_force
from catalog.audit import Actor, Change, record
from catalog.exceptions import CatalogueError
from catalog.revision import bump_revision, lock_revision


@transaction.atomic
def set_rate(
    from_currency: str, to_currency: str, rate: Decimal, *, actor: Actor, now: datetime
) -> CurrencyRateVersion:
    """`rate` units of `to_currency` for one of `from_currency`, from `now`; the present version where it
    is the same. Raises CatalogueError where the present one began at `now`."""
    lock_revision()
    present = rates_in_force(to_currency, now).get(from_currency)
    if present and present.rate == rate:
        return present
    if present and present.effective_from == now:
        raise CatalogueError("rate", f"{present} took effect at {now}: a change needs a later time")
    version = CurrencyRateVersion.objects.create(
        from_currency=from_currency, to_currency=to_currency, rate=rate, effective_from=now
    )
    before, after = (
        {"rate": format(row.rate.normalize(), "f")} if row else None for row in (present, version)
    )
    subject = f"rate:{from_currency}-{to_currency}"
    record(actor, Change("set rate", subject, before, after), now)
    bump_revision()
    return version
