"""What a normalized error says about the health of channel and supply; pure."""

from health.circuit import Kind

_NO_EFFECT_CATEGORIES = ("content", "request")
# Told by the provider about the request, its own calendar or a finished result: nobody is ill. What became
# of an unknown submission gives no second piece after the one it gave when it became unknown.
_NO_EFFECT_CODES = ("unsupported_capability", "quota", "output_expired", "not_created")


def health_effect(category: str, scope: str, code: str) -> tuple[Kind, str]:
    """Failure or none, and whose: `supply` or `channel`. The words are those of a provider error."""
    whose = "channel" if scope == "channel" else "supply"
    if category in _NO_EFFECT_CATEGORIES or code in _NO_EFFECT_CODES:
        return Kind.NONE, whose
    return Kind.FAILURE, whose
