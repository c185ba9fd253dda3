"""A wish to move an attempt, as a value."""

from dataclasses import dataclass, field
from typing import Any

from catalog.providers.types import ProviderError
from dispatch.lifecycle import AttemptState


@dataclass(frozen=True)
class Move:
    """One wished move: `version` is the state version on which the wish was decided."""

    attempt_id: int
    version: int
    to: AttemptState
    changes: dict[str, Any] = field(default_factory=dict)
    error: ProviderError | None = None
    access_revoked: bool = False
