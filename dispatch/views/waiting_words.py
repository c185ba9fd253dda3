"""What is said of waiting jobs, in the reader's language."""

from dispatch.views.vocabulary import VERDICTS, WAITING, word
from dispatch.waiting import Verdict


def verdict_sentence(verdict: Verdict) -> str:
    """The line above everything: whether jobs move, and what holds most of them up."""
    values = {
        "waiting": verdict.waiting,
        "jobs": verdict.jobs,
        "reason": word(WAITING, verdict.reason) if verdict.reason else "",
    }
    return word(VERDICTS, verdict.code) % values
