"""What several examples of routing begin with."""

from typing import Any

from tests.rules.scenarios import reasons, scenario

FULL: dict[str, Any] = {"capacity": 2, "used": 2}


def only_reason(it: dict[str, Any], **sections: Any) -> str | None:
    """Of one supply bound as exact."""
    return reasons(scenario({"a": it}, **sections))["a"]
