"""Tables that keep evidence: the database itself refuses to change or empty them."""

from django.db.migrations.operations import RunSQL

_FUNCTION = """
CREATE OR REPLACE FUNCTION frameyard_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;
"""


class AppendOnly(RunSQL):
    """Migration operation: triggers that refuse UPDATE, DELETE and TRUNCATE on `table`."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            sql=f"""{_FUNCTION}
            CREATE TRIGGER {table}_rows_append_only BEFORE UPDATE OR DELETE ON {table}
                FOR EACH ROW EXECUTE FUNCTION frameyard_refuse_change();
            CREATE TRIGGER {table}_append_only BEFORE TRUNCATE ON {table}
                FOR EACH STATEMENT EXECUTE FUNCTION frameyard_refuse_change();""",
            reverse_sql=f"""
            DROP TRIGGER {table}_rows_append_only ON {table};
            DROP TRIGGER {table}_append_only ON {table};""",
        )

    def deconstruct(self) -> tuple[str, list[str], dict[str, object]]:
        return (self.__class__.__qualname__, [self.table], {})


class ImmutableExcept(RunSQL):
    """Migration operation: a trigger that refuses DELETE, and UPDATE of any column but those named."""

    def __init__(self, table: str, columns: list[str]) -> None:
        self.table, self.columns = table, columns
        free = f"ARRAY[{', '.join(f"'{column}'" for column in columns)}]::text[]"
        super().__init__(
            sql=f"""{_FUNCTION}
            CREATE TRIGGER {table}_never_deleted BEFORE DELETE ON {table}
                FOR EACH ROW EXECUTE FUNCTION frameyard_refuse_change();
            CREATE TRIGGER {table}_immutable BEFORE UPDATE ON {table} FOR EACH ROW
                WHEN (to_jsonb(OLD) - {free} IS DISTINCT FROM to_jsonb(NEW) - {free})
                EXECUTE FUNCTION frameyard_refuse_change();""",
            reverse_sql=f"""
            DROP TRIGGER {table}_never_deleted ON {table};
            DROP TRIGGER {table}_immutable ON {table};""",
        )

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return (self.__class__.__qualname__, [self.table, self.columns], {})
