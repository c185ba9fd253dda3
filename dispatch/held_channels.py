"""Channels that get nothing new while submissions of unknown outcome pile up there.

The alert is what holds one: as long as it is open, no selection takes the channel and no guard lets a
submission pass; what was sent is looked for and followed as ever."""

from datetime import datetime, timedelta

from health.alerts import open_subjects

HELD_BY = "submission_unknown_surge"
# What a selection is told, anew each time. It is a long wait to the router, so that the next layer opens.
HOLD = timedelta(minutes=15)


def subject_of(channel: str) -> str:
    """Of the alert about a channel, by the channel's slug."""
    return f"channel:{channel}"


def held_until(now: datetime) -> dict[str, datetime]:
    """By slug, each channel that is held, and until when a selection of now must not take it."""
    subjects = open_subjects(HELD_BY)
    return {subject.removeprefix(subject_of("")): now + HOLD for subject in subjects}


def is_held(channel: str) -> bool:
    return subject_of(channel) in open_subjects(HELD_BY)
