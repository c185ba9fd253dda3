"""A simulator whose time stands still, and servers for it to call."""

from tests.providers.conftest import serve, simulator  # noqa: F401 - fixtures
