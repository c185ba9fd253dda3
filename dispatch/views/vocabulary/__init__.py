"""The words of the console: every stored code with its sentence, in the reader's language.

Codes and values are stored, words are rendered: the same row reads in English and in Chinese. Templates ask
for a family by its name."""

from dispatch.views.vocabulary.operations import *  # noqa: F403
from dispatch.views.vocabulary.waiting import *  # noqa: F403
from dispatch.views.vocabulary.words import Words as Words
from dispatch.views.vocabulary.words import word as word
from dispatch.views.vocabulary.work import *  # noqa: F403
