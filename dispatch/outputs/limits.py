"""The bounds within which foreign bytes are fetched and parsed. Callers fill them from the settings."""

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How far one download may go.

    `allow_private` opens loopback and private networks, plain http and every port: for the simulator only.
    `trusted_origins` (`http://10.0.0.5:8188`) opens the same for the addresses an administrator entered
    himself, such as a ComfyUI in the own network; never fill it from a customer's or a provider's words.
    `deadline_s` bounds everything together: names, connections, redirects, body.
    """

    max_bytes: int
    deadline_s: float
    connect_timeout_s: float = 10
    read_timeout_s: float = 30
    max_redirects: int = 3
    ports: frozenset[int] = frozenset({443})
    allow_private: bool = False
    trusted_origins: frozenset[str] = frozenset()
    ca_file: str | None = None  # PEM; None = the authorities that `requests` brings


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What a file may be, and what its parser may use before it is killed.

    Chromium's own bound of a picture is near the default of `max_pixels`; 8K video has 33 million.
    """

    max_pixels: int = 100_000_000
    max_duration_ms: int = 15 * 60 * 1000
    cpu_s: int = 30
    wall_s: float = 60
    memory_bytes: int = 2048 * MEBIBYTE
