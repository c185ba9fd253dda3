"""How many files a worker may have open: a connection to each channel for each thread that polls."""

import resource
from collections.abc import Iterator

import pytest

from config.management.commands.worker import OPEN_FILES, allow_open_files


@pytest.fixture
def hard() -> Iterator[int]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_low_soft_limit_is_raised_as_far_as_the_machine_allows(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
    allow_open_files()
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)


def test_a_limit_that_is_higher_is_left_as_it_is(hard: int) -> None:
    higher = OPEN_FILES + 1 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (higher, hard))
    allow_open_files()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (higher, hard)
