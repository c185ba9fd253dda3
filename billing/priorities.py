"""Which of a customer's projects go first in its own queue; pure. No level moves it before others."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

LEVELS: Final = range(-5, 6)  # higher goes first; 0 where nothing is said
AGE_PER_LEVEL: Final = timedelta(seconds=30)
MOST_PROJECTS: Final = 200
MOST_LETTERS: Final = 80


class PriorityError(ValueError):
    """The mapping can't be used; the message says what is wrong."""


def parse_priorities(document: Any) -> dict[str, int]:
    """{project: level}. Raises PriorityError."""
    if not isinstance(document, Mapping):
        raise PriorityError("priorities are a mapping of projects to levels")
    if len(document) > MOST_PROJECTS:
        raise PriorityError(f"at most {MOST_PROJECTS} projects have a level of their own")
    for project, level in document.items():
        if not isinstance(project, str) or not 0 < len(project) <= MOST_LETTERS:
            raise PriorityError(f"{str(project)[:20]!r}: a project is 1 to {MOST_LETTERS} characters")
        if not isinstance(level, int) or isinstance(level, bool) or level not in LEVELS:
            raise PriorityError(
                f"{project}: a level is a whole number from {LEVELS.start} to {LEVELS.stop - 1}"
            )
    return dict(document)


def level_of(project: str, priorities: Mapping[str, int]) -> int:
    return priorities.get(project, 0)


def head_start(level: int) -> timedelta:
    """How much earlier a job counts as arrived. A level is worth so much age: whoever has waited as long as
    the whole range is worth is passed by nobody who comes later; so far, and no farther, age helps."""
    return level * AGE_PER_LEVEL
