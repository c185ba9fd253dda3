"""What an attempt's move says about the health of its channel and supply; pure.

An attempt gives one piece, at its failure or when it is generated. Content and request errors say nothing,
nor do cancelled and guard-stopped attempts, lost outputs, or what is found out about an uncertain submission."""

from dataclasses import dataclass

from dispatch.lifecycle import AttemptState

A = AttemptState
_SILENT_CATEGORIES = frozenset({"content", "request"})
_SILENT_CODES = frozenset({"unsupported_capability", "quota", "not_created", "output_expired"})


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence; `scope` and `code` of a failure only."""

    succeeded: bool
    scope: str = ""
    code: str = ""


def piece_of(to: AttemptState, category: str, scope: str, code: str) -> Piece | None:
    """The piece that a move to `to` gives, with the normalized error that came with it; None for none."""
    if to is A.GENERATED:
        return Piece(True)
    if to is A.SUBMISSION_UNCERTAIN:
        return Piece(False, "supply", "submission_unknown")
    if to is not A.FAILED or category in _SILENT_CATEGORIES or code in _SILENT_CODES:
        return None
    return Piece(False, "channel" if scope == "channel" else "supply", code)
