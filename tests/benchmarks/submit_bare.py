"""Inserts one row into the table of jobs and commits; frozen, and nothing of the product in it."""

import os
from itertools import count
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tests.benchmarks.serving import serve


def main() -> None:
    connection = psycopg.connect(os.environ["DATABASE_URL"], row_factory=dict_row)
    row = connection.execute("SELECT * FROM dispatch_job LIMIT 1").fetchone()
    assert row is not None
    connection.commit()
    del row["id"]
    row = {name: Jsonb(value) if isinstance(value, dict | list) else value for name, value in row.items()}
    columns = sql.SQL(", ").join(map(sql.Identifier, row))
    values = sql.SQL(", ").join(map(sql.Placeholder, row))
    statement = sql.SQL("INSERT INTO dispatch_job ({}) VALUES ({})").format(columns, values)
    numbers = count()

    def insert() -> None:
        name = f"job_{uuid4().hex[:26]}"
        connection.execute(statement, {**row, "public_id": name, "idempotency_key": f"bare-{next(numbers)}"})
        connection.commit()

    serve(insert)


if __name__ == "__main__":
    main()
