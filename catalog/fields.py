"""Model fields that the whole installation shares."""

from typing import Any

from django.db import models

from catalog.ids import LENGTH, public_id


class PublicIdField(models.CharField):  # type: ignore[type-arg]
    """The id that the outside sees, e.g. `chn_…`: given at creation, unique, never edited."""

    def __init__(self, prefix: str, **options: Any) -> None:
        self.prefix = prefix
        options |= {"max_length": len(prefix) + 1 + LENGTH, "unique": True, "editable": False}
        super().__init__(**options)

    def get_default(self) -> str:
        return public_id(self.prefix)

    def has_default(self) -> bool:
        return True

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        for given in ("max_length", "unique", "editable"):
            options.pop(given, None)
        return name, path, [self.prefix, *args], options
