"""The planted bugs by name; the module that plants them can only be read in a simulating process."""

NAMES = (
    "post again after a read timeout",
    "release the slot before the end is settled",
    "release a slot twice",
    "ignore the epoch of a row",
    "count, then insert",
    "adopt a late result",
    "settle twice",
    "renew a lease that was lost",
    "try a second supply while the first is unknown",
    "take one reading for a proof of absence",
    "follow a provider's status backwards",
    "skip the final guard",
)
