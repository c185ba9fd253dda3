"""Fixtures of the console's tests: signed-in clients by role, and static files as they lie in the folder."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.factories import UserFactory

_PLAIN_FILES = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

type SignIn = Callable[..., Client]


@pytest.fixture
def plain_static_files(settings: Settings) -> None:
    """Without the manifest that `collectstatic` makes for production."""
    settings.STORAGES = settings.STORAGES | {"staticfiles": _PLAIN_FILES}
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = False


@pytest.fixture
def sign_in(db: None, plain_static_files: None) -> SignIn:
    """`sign_in("operator")`: a client whose user, named `li.m`, has that role; with no role at all, none."""

    def signed_in(*roles: str, username: str = "li.m") -> Client:
        client = Client()
        client.force_login(UserFactory(username=username, roles=list(roles)))
        return client

    return signed_in
