"""A simulator whose time stands still, and a client for it."""

from tests.providers.conftest import certificate, serve, simulator  # noqa: F401 - fixtures
