"""Reads settings from the environment; what is malformed is remembered for the system checks."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

PREFIX = "FRAMEYARD_"


@dataclass(frozen=True)
class Problem:
    """One variable with a value that cannot be used; shown by `manage.py check`."""

    name: str
    message: str


problems: list[Problem] = []


def text(name: str, default: str = "") -> str:
    return os.environ.get(PREFIX + name, default)


def flag(name: str, default: bool = False) -> bool:
    raw = text(name).strip().lower()
    if raw in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return default if raw == "" else raw in ("1", "true", "yes", "on")
    problems.append(Problem(PREFIX + name, f"{raw!r} is not a yes or a no; use 1 or 0"))
    return default


def number(name: str, default: int, minimum: int = 0) -> int:
    raw = text(name).strip()
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        problems.append(Problem(PREFIX + name, f"{raw!r} is not a whole number"))
        return default
    if value < minimum:
        problems.append(Problem(PREFIX + name, f"{value} is below the least allowed value, {minimum}"))
        return default
    return value


def time_zone(name: str, default: str) -> str:
    raw = text(name).strip() or default
    try:
        return ZoneInfo(raw).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problems.append(Problem(PREFIX + name, f"{raw!r} is not a time zone such as Asia/Shanghai"))
        return default


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def path(name: str, default: Path) -> Path:
    return Path(text(name) or default).resolve()


def database(url: str, **options: object) -> dict[str, object]:
    """DATABASE_URL as Django's dict: `postgres://user:password@host:port/name`, or a socket
    folder as `postgresql:///name?host=/folder&user=postgres`. `options` are the driver's."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        problems.append(Problem("DATABASE_URL", "start it with postgres:// ; no other database is supported"))
    given = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "config.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "frameyard",
        "HOST": given.pop("host", parts.hostname or ""),
        "PORT": given.pop("port", str(parts.port or "")),
        "USER": given.pop("user", unquote(parts.username or "")),
        "PASSWORD": unquote(parts.password or ""),
        "OPTIONS": {**options, **given},
    }
