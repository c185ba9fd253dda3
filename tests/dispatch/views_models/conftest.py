"""Two public models, and an operator who edits and publishes them."""

import pytest
from django.test import Client

from tests.console import SignIn
from tests.models_world import ModelsWorld, make_models_world


@pytest.fixture
def world(db: None) -> ModelsWorld:
    return make_models_world()


@pytest.fixture
def li(sign_in: SignIn, world: ModelsWorld) -> Client:
    """Edits and publishes."""
    return sign_in("operator", "publisher")
