"""Rows by statements of our own are those that the ORM reads and writes."""

import pytest
from django.forms.models import model_to_dict

from billing.models import ApiKey, Customer, CustomerGroup
from catalog.models import AuditEntry
from catalog.rows import all_rows, first_row, insert_each, insert_new, insert_unknown
from tests.factories import NOW, ApiKeyFactory, CustomerFactory, CustomerGroupFactory

_JOIN = """
FROM billing_apikey AS api_key JOIN billing_customer AS customer ON customer.id = api_key.customer_id
LEFT JOIN billing_customergroup AS customer_group ON customer_group.id = customer.group_id
WHERE api_key.id = %s"""


@pytest.mark.django_db
@pytest.mark.parametrize("is_grouped", [True, False])
def test_a_join_gives_an_instance_of_each_table_with_every_value(is_grouped: bool) -> None:
    group = CustomerGroupFactory() if is_grouped else None
    key = ApiKeyFactory(
        customer=CustomerFactory(group=group, project_priorities={"p": "high"}),
        allowed_addresses=["10.0.0.0/8"],
    )
    found = first_row(_JOIN, [key.pk], api_key=ApiKey, customer=Customer, customer_group=CustomerGroup)
    assert found is not None
    assert found[2] == group
    for read, model, pk in ((found[0], ApiKey, key.pk), (found[1], Customer, key.customer_id)):
        assert model_to_dict(read) == model_to_dict(model.objects.get(pk=pk))
        assert not read._state.adding


@pytest.mark.django_db
def test_what_no_row_fits_is_nothing() -> None:
    assert first_row(_JOIN, [0], api_key=ApiKey, customer=Customer, customer_group=CustomerGroup) is None


@pytest.mark.django_db
def test_a_new_row_is_stored_whole_and_its_like_is_not() -> None:
    row = CustomerFactory.build(group=CustomerGroupFactory(), project_priorities={"p": "high"})
    assert insert_new(row)
    assert model_to_dict(row) == model_to_dict(Customer.objects.get(pk=row.pk))
    assert not insert_new(CustomerFactory.build(public_id=row.public_id, group=row.group))
    assert Customer.objects.count() == 1


@pytest.mark.django_db
def test_a_json_value_comes_back_as_it_was() -> None:
    row = AuditEntry(actor="ops", source="console", action="look", subject="job:1", after={"a": [1]}, at=NOW)
    assert insert_new(row)
    assert AuditEntry.objects.get(pk=row.pk).after == {"a": [1]}


@pytest.mark.django_db
def test_many_rows_are_stored_whole_and_in_their_order_and_read_back_without_what_nobody_asks_for() -> None:
    group = CustomerGroupFactory()
    priorities = [{"p": "high"}, {}, {"q": "low"}]
    rows = [CustomerFactory.build(group=group, project_priorities=each) for each in priorities]
    insert_each(rows)
    assert [row.pk for row in rows] == sorted(row.pk for row in rows)
    assert not any(row._state.adding for row in rows)
    for row in rows:
        assert model_to_dict(row) == model_to_dict(Customer.objects.get(pk=row.pk))
    source = "FROM billing_customer AS customer WHERE customer.id = ANY(%s::bigint[]) ORDER BY customer.id"
    asked = [[row.pk for row in rows[1:]]]
    found = all_rows(source, asked, frozenset({"project_priorities"}), customer=Customer)
    assert [customer for (customer,) in found] == rows[1:]
    assert found[0][0].get_deferred_fields() == {"project_priorities"}
    assert [customer.project_priorities for (customer,) in found] == priorities[1:]


@pytest.mark.django_db
def test_of_many_rows_those_that_are_there_already_stay_as_they_are() -> None:
    known = CustomerFactory(name="as it was", group=None)
    again = CustomerFactory.build(public_id=known.public_id, name="another", group=None)
    insert_unknown([again, CustomerFactory.build(name="new", group=None)])
    assert sorted(Customer.objects.values_list("name", flat=True)) == ["as it was", "new"]
    insert_each([])
    insert_unknown([])
