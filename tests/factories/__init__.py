"""Rows for tests, valid by default: name only what the test is about.

Times are counted from NOW, never from the clock."""

from tests.factories.catalogue import *  # noqa: F403
from tests.factories.circuits import *  # noqa: F403
from tests.factories.people import *  # noqa: F403
from tests.factories.rows import *  # noqa: F403
from tests.factories.work import *  # noqa: F403
