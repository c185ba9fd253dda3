"""Transactions begun anew: those of victims alone, not for ever, and never a part of a whole."""

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from catalog.models import CapacityGroup
from catalog.retrying import TIMES, retried_as_victim

DEADLOCK, CONFLICT, FULL = "40P01", "40001", "53100"


class Unit:
    """Stores a row, and is ended by PostgreSQL itself the first times."""

    def __init__(self, code: str, victim_times: int) -> None:
        self._code, self._left, self.runs = code, victim_times, 0

    def __call__(self) -> int:
        with transaction.atomic():
            self.runs += 1
            row = CapacityGroup.objects.create(endpoint="https://provider", account="one", capacity=1)
            self._left -= 1
            if self._left >= 0:
                with connection.cursor() as cursor:
                    cursor.execute(f"DO $$ BEGIN RAISE 'ended' USING ERRCODE = '{self._code}'; END $$")
            return row.pk


def retried(unit: Unit) -> int:
    return retried_as_victim(lambda: unit())()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("code", [DEADLOCK, CONFLICT])
def test_a_victim_is_begun_anew_and_stores_once(code: str) -> None:
    unit = Unit(code, victim_times=2)
    assert retried(unit) == CapacityGroup.objects.get().pk
    assert unit.runs == 3


@pytest.mark.django_db(transaction=True)
def test_who_is_the_victim_each_time_gives_up_and_leaves_nothing() -> None:
    unit = Unit(DEADLOCK, victim_times=TIMES)
    with pytest.raises(OperationalError):
        retried(unit)
    assert (unit.runs, CapacityGroup.objects.count()) == (TIMES, 0)


@pytest.mark.django_db(transaction=True)
def test_any_other_end_is_told_at_once() -> None:
    unit = Unit(FULL, victim_times=1)
    with pytest.raises(DatabaseError):
        retried(unit)
    assert unit.runs == 1


@pytest.mark.django_db(transaction=True)
def test_a_part_of_another_transaction_is_not_begun_anew_by_itself() -> None:
    unit = Unit(DEADLOCK, victim_times=1)
    with pytest.raises(OperationalError), transaction.atomic():
        retried(unit)
    assert unit.runs == 1
