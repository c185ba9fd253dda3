"""Rows of models by statements of our own, for what every request does: the ORM takes longer to write such a
statement than PostgreSQL to answer it."""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Field, Model

from catalog.statements import prepared

type Fields = Sequence["Field[Any, Any]"]
type _Read = Callable[[Any, Any, Any], Any]


def first_row(source: str, parameters: Sequence[Any], **tables: type[Model]) -> tuple[Any, ...] | None:
    """An instance of each table, in their order; None for one that an outer join did not find.

    `source` is FROM and what follows, in which the tables go by the names that they are given here. None
    where there is no row."""
    columns = [f"{name}.{field.column}" for name, model in tables.items() for field in _fields(model)]
    with prepared() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} {source} LIMIT 1", parameters)
        found = cursor.fetchone()
    if found is None:
        return None
    values = iter(found)
    return tuple(_instance(model, [next(values) for _ in _fields(model)]) for model in tables.values())


def insert_new(row: Model) -> bool:
    """Stores an unsaved row and gives it its id. False, and nothing stored, where a constraint says that
    there is one like it."""
    statement, fields = _insertion(type(row))
    with prepared() as cursor:
        cursor.execute(statement, [column_value(field, field.pre_save(row, add=True)) for field in fields])
        stored = cursor.fetchone()
    if stored is None:
        return False
    row.pk, row._state.adding, row._state.db = stored[0], False, connection.alias
    return True


def column_value(field: "Field[Any, Any]", value: Any) -> Any:
    """As the column takes it."""
    return field.get_db_prep_save(value.value if isinstance(value, Enum) else value, connection)


def _fields(model: type[Model]) -> Fields:
    return model._meta.concrete_fields


def _instance(model: type[Model], values: list[Any]) -> Model | None:
    """None where the row of an outer join is none: it has no id."""
    names, id_at, read = _reading(model)
    if values[id_at] is None:
        return None
    for number, convert in read:
        values[number] = convert(values[number], None, connection)
    return model.from_db(connection.alias, names, values)


@cache
def _reading(model: type[Model]) -> tuple[list[str], int, list[tuple[int, _Read]]]:
    """Its fields' names, where its id stands, and what makes the values of which places readable."""
    fields = _fields(model)
    names = [field.attname for field in fields]
    converters = [
        (number, convert)
        for number, field in enumerate(fields)
        for convert in field.get_db_converters(connection)
    ]
    return names, fields.index(model._meta.pk), converters


@cache
def _insertion(model: type[Model]) -> tuple[str, Fields]:
    meta = model._meta
    fields = [field for field in meta.concrete_fields if not (field.primary_key or field.generated)]
    columns = ", ".join(str(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    statement = (
        f"INSERT INTO {meta.db_table} ({columns}) VALUES ({places}) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608
    )
    return statement, fields
