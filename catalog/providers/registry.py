"""The adapters, by the key that a channel names."""

from collections.abc import Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator

from catalog.providers.types import Adapter
from catalog.providers.volcengine_ark import VolcengineArk

ADAPTERS: Final[Mapping[str, Adapter]] = {adapter.key: adapter for adapter in (VolcengineArk(),)}


class UnknownProvider(LookupError):
    """No adapter has that key; the message lists those that exist."""


def adapter_for(provider: str) -> Adapter:
    """Raises UnknownProvider."""
    try:
        return ADAPTERS[provider]
    except KeyError:
        raise UnknownProvider(f"no adapter is called {provider!r}; known: {', '.join(ADAPTERS)}") from None


def config_problems(provider: str, config: Any) -> list[tuple[str, str]] | None:
    """Path inside `config` and message of all that the adapter's schema refuses; None: no such adapter."""
    adapter = ADAPTERS.get(provider)
    if adapter is None:
        return None
    found = Draft202012Validator(adapter.config_schema).iter_errors(config)
    return [(error.json_path.removeprefix("$").removeprefix("."), error.message) for error in found]
