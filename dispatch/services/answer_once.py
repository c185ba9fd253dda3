"""Lets a form have its effect once, however often it is sent."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from dispatch.models import FormReceipt

KEPT_FOR = timedelta(days=2)  # longer than a form can be sent


def answer_once(key: str, user: str, now: datetime, act: Callable[[], str | None]) -> str | None:
    """The address to go to: of `act`, or that of the first time. `act` runs in one transaction with the
    receipt; what it raises, or its None, takes both back."""
    earlier = FormReceipt.objects.filter(pk=key).first()
    if earlier is not None:
        return earlier.went_to
    try:
        with transaction.atomic():
            # The key's place is taken first: another that is sent at once waits here, and finds the answer.
            receipt = FormReceipt.objects.create(key=key, user=user, went_to="", at=now)
            went_to = act()
            if went_to is None:
                transaction.set_rollback(True)
            else:
                receipt.went_to = went_to
                receipt.save(update_fields=["went_to"])
            return went_to
    except IntegrityError:
        first = FormReceipt.objects.filter(pk=key).first()
        if first is None:
            raise
        return first.went_to


def forget_receipts(now: datetime) -> None:
    FormReceipt.objects.filter(at__lt=now - KEPT_FOR).delete()
