"""What one page sends at once and the server hears in another order."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from dispatch.models import WorkingCopy
from dispatch.services.edit_model import Typed, keep_working_copy
from tests.factories import NOW, PublicModelFactory, UserFactory
from tests.waiting import until_somebody_waits

PRIORITY = "osprey-pro@exact:priority"


@pytest.mark.django_db(transaction=True)
def test_e13_an_earlier_change_that_meets_a_later_one_beginning_the_copy_changes_nothing() -> None:
    model, person = PublicModelFactory(), UserFactory(username="li.m")

    def keep(step: int, priority: str) -> None:
        keep_working_copy(model, person, Typed(1, {PRIORITY: priority}, "17000.5", step), NOW)

    def come_late() -> None:
        keep(4, "940000")
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            keep(7, "950000")
            late = pool.submit(come_late)
            until_somebody_waits(late)
        late.result()
    assert WorkingCopy.objects.get().typed == {PRIORITY: "950000"}
