"""Rows of models by statements of our own, for what every request does: the ORM takes longer to write such a
statement than PostgreSQL to answer it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Field, Model

from catalog.statements import prepared

type Fields = Sequence["Field[Any, Any]"]
type _Convert = Callable[[Any, Any, Any], Any]


def first_row(source: str, parameters: Sequence[Any], **tables: type[Model]) -> tuple[Any, ...] | None:
    """An instance of each table, in their order; None for one that an outer join did not find.

    `source` is FROM and what follows, in which the tables go by the names that they are given here. None
    where there is no row."""
    return next(_read(f"{source} LIMIT 1", parameters, frozenset(), tables), None)


def all_rows(
    source: str, parameters: Sequence[Any], without: frozenset[str] = frozenset(), **tables: type[Model]
) -> list[tuple[Any, ...]]:
    """As `first_row`, of each row. `without`: fields that are read only where somebody asks for them."""
    return list(_read(source, parameters, without, tables))


def _read(
    source: str, parameters: Sequence[Any], without: frozenset[str], tables: Mapping[str, type[Model]]
) -> Iterator[tuple[Any, ...]]:
    columns, readings = _reading(tuple(tables.items()), without)
    with prepared() as cursor:
        cursor.execute(f"SELECT {columns} {source}", parameters)
        found = cursor.fetchall()
    for row in found:
        yield tuple(_instance(reading, row) for reading in readings)


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


def insert_each(rows: Sequence[Model]) -> None:
    """Stores unsaved rows of one model by one statement and gives them their ids."""
    for row, pk in zip(rows, _inserted(rows, "RETURNING id"), strict=True):
        row.pk, row._state.adding, row._state.db = pk, False, connection.alias


def insert_unknown(rows: Sequence[Model]) -> None:
    """As `insert_each`, but those that a constraint says there are already; nobody is given an id."""
    _inserted(rows, "ON CONFLICT DO NOTHING RETURNING id")


def _inserted(rows: Sequence[Model], ending: str) -> list[int]:
    if not rows:
        return []
    statement, fields = _insertion_of_many(type(rows[0]))
    columns = [[column_value(field, field.pre_save(row, add=True)) for row in rows] for field in fields]
    with prepared() as cursor:
        cursor.execute(f"{statement} {ending}", columns)
        return [pk for (pk,) in cursor.fetchall()]


_AS_IT_IS: Mapping[str, type] = {
    "CharField": str,
    "TextField": str,
    "BooleanField": bool,
    "DateTimeField": datetime,
    **dict.fromkeys(
        (
            *("ForeignKey", "OneToOneField", "IntegerField", "BigIntegerField", "SmallIntegerField"),
            *("PositiveIntegerField", "PositiveSmallIntegerField", "PositiveBigIntegerField"),
        ),
        int,
    ),
}


def column_value(field: "Field[Any, Any]", value: Any) -> Any:
    """As the column takes it."""
    if isinstance(value, Enum):
        value = value.value
    # Django asks each kind of field, which takes longer than everything else that is done with most values.
    if type(value) is _AS_IT_IS.get(field.get_internal_type()):
        return value
    return field.get_db_prep_save(value, connection)


def array_type(field: "Field[Any, Any]") -> str:
    """Of a column's values, one for each row. Text for what has a longest length: a cast would cut it off
    there, where the column refuses it."""
    kind = field.db_type(connection) or ""
    return "text[]" if kind.startswith("varchar") else f"{kind}[]"


def _fields(model: type[Model]) -> Fields:
    return model._meta.concrete_fields


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the values of one model are found in a row of several."""

    model: type[Model]
    names: list[str]
    place: slice
    id_at: int  # within its own
    converters: list[tuple[int, _Convert]]


def _instance(reading: _Reading, row: tuple[Any, ...]) -> Model | None:
    """None where the row of an outer join is none: it has no id."""
    values = list(row[reading.place])
    if values[reading.id_at] is None:
        return None
    for number, convert in reading.converters:
        values[number] = convert(values[number], None, connection)
    return reading.model.from_db(connection.alias, reading.names, values)


@cache
def _reading(
    tables: tuple[tuple[str, type[Model]], ...], without: frozenset[str]
) -> tuple[str, list[_Reading]]:
    """The columns of all tables, and where each model's are."""
    columns: list[str] = []
    readings = []
    for name, model in tables:
        fields = [field for field in _fields(model) if field.name not in without]
        place = slice(len(columns), len(columns) + len(fields))
        columns += [f"{name}.{field.column}" for field in fields]
        converters = [
            (number, convert)
            for number, field in enumerate(fields)
            for convert in field.get_db_converters(connection)
        ]
        readings.append(
            _Reading(
                model,
                [field.attname for field in fields],
                place,
                fields.index(model._meta.pk),
                converters,
            )
        )
    return ", ".join(columns), readings


@cache
def _insertion_of_many(model: type[Model]) -> tuple[str, Fields]:
    fields = _inserted_fields(model)
    columns = ", ".join(str(field.column) for field in fields)
    arrays = ", ".join(f"%b::{array_type(field)}" for field in fields)
    return f"INSERT INTO {model._meta.db_table} ({columns}) SELECT * FROM unnest({arrays})", fields  # noqa: S608


@cache
def _insertion(model: type[Model]) -> tuple[str, Fields]:
    fields = _inserted_fields(model)
    columns = ", ".join(str(field.column) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    statement = (
        f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({places})"  # noqa: S608
        " ON CONFLICT DO NOTHING RETURNING id"
    )
    return statement, fields


def _inserted_fields(model: type[Model]) -> Fields:
    return [field for field in _fields(model) if not (field.primary_key or field.generated)]
