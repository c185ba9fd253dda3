"""Many rows of one table, each with values of its own, by one statement.

`bulk_update` writes a CASE over every row for each column; here each column is one array."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db.models import Field, Model

from catalog.rows import array_type, column_value
from catalog.statements import prepared

type Values = Mapping[str, Any]


def update_each(
    model: type[Model], rows: Mapping[int, Values], versions: Mapping[int, int] | None = None
) -> set[int]:
    """The ids of the rows that are written; one statement for all that get values in the same columns.

    `versions`: only a row whose `state_version` is that is written."""
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for pk, values in rows.items():
        alike[tuple(values)].append(pk)
    written: set[int] = set()
    for columns, ids in alike.items():
        statement, fields = _statement(model, columns, versions is not None)
        arrays = [[column_value(field, rows[pk][name]) for pk in ids] for name, field in fields.items()]
        guards = [] if versions is None else [[versions[pk] for pk in ids]]
        with prepared() as cursor:
            cursor.execute(statement, [ids, *guards, *arrays])
            written |= {pk for (pk,) in cursor.fetchall()}
    return written


@cache
def _statement(
    model: type[Model], columns: tuple[str, ...], is_guarded: bool
) -> tuple[str, "Mapping[str, Field[Any, Any]]"]:
    meta = model._meta
    named = {name: field for field in meta.concrete_fields for name in (field.name, field.attname)}
    fields = {name: named[name] for name in columns}
    names = [str(field.column) for field in fields.values()]
    guard, condition = ("at_version, ", "AND row.state_version = new.at_version") if is_guarded else ("", "")
    arrays = ["bigint[]", *(["int[]"] if is_guarded else []), *map(array_type, fields.values())]
    statement = f"""
        UPDATE {meta.db_table} AS row SET {", ".join(f"{name} = new.{name}" for name in names)}
        FROM unnest({", ".join(f"%b::{kind}" for kind in arrays)}) AS new(of_row, {guard}{", ".join(names)})
        WHERE row.id = new.of_row {condition}
        RETURNING row.id"""  # noqa: S608 - our own names
    return statement, fields
