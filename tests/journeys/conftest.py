"""Journeys share the rows of the test's database with real processes, so nothing runs in a transaction."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection

from tests.journeys.processes import Running, database_url, manage, running

Start = Callable[..., Running]


@pytest.fixture
def start(transactional_db: None, tmp_path: Path) -> Iterator[Start]:
    """Starts `manage.py` with these arguments on the test's database; its output is in `tmp_path`."""
    environment = {**os.environ, "DATABASE_URL": database_url(connection.settings_dict["NAME"])}
    with ExitStack() as stack:

        def start(*arguments: str, name: str = "", **variables: str) -> Running:
            output = tmp_path / f"{name or '-'.join(arguments)}.log"
            return stack.enter_context(running(manage(*arguments), environment | variables, output))

        yield start
