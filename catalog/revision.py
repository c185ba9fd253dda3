"""The catalogue's revision number: grows with each change, and is the lock that orders the changes."""

from django.db.models import F

from catalog.exceptions import StaleRevision
from catalog.models import CatalogueRevision
from catalog.statements import prepared

_ROW = 1


def current_revision() -> int:
    """Raises CatalogueRevision.DoesNotExist where there is no catalogue, not even an empty one."""
    with prepared() as cursor:
        cursor.execute("SELECT number FROM catalog_cataloguerevision WHERE id = %s", [_ROW])
        found = cursor.fetchone()
    if found is None:
        raise CatalogueRevision.DoesNotExist
    return int(found[0])


def lock_revision() -> int:
    """The number, with the row locked to the end of the transaction: one change of the catalogue at a time.

    Taken before any other lock of the catalogue, so that two changes wait instead of deadlocking."""
    return CatalogueRevision.objects.select_for_update().get(pk=_ROW).number


def bump_revision() -> None:
    """Tells every process that its in-memory catalogue is stale; call it in the transaction of the change."""
    CatalogueRevision.objects.filter(pk=_ROW).update(number=F("number") + 1)


def expect_revision(subject: str, expected: int | None, actual: int | None) -> None:
    """Optimistic lock of one entry; None means that it does not exist. Raises StaleRevision."""
    if expected != actual:
        raise StaleRevision(subject, expected, actual)
