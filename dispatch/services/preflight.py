"""The production gates against a draft that is not saved: it is saved, judged, and taken back."""

from datetime import datetime

from django.db import transaction

from catalog.audit import Actor
from dispatch.drafting.reading import Draft
from dispatch.gates import Gate
from dispatch.services.publish import review
from dispatch.services.save_draft import save_draft

_NOBODY = Actor("preflight", "console")


def preflight(draft: Draft, expected_revision: int, now: datetime) -> list[Gate]:
    """The gates as they would be found after saving; nothing is kept. Raises what save_draft raises."""
    with transaction.atomic():
        row = save_draft(draft, expected_revision=expected_revision, actor=_NOBODY, now=now)
        gates = review(row, now)
        transaction.set_rollback(True)
    return gates
