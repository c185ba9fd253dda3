"""How a stored code is said in the reader's language."""

from collections.abc import Mapping

from django.utils.functional import Promise

type Words = Mapping[str, str | Promise]


def word(words: Words, code: str) -> str:
    """The code itself where it has no word: a new code is shown, not hidden."""
    return str(words.get(code, code))
