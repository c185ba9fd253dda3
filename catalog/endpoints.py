"""When two addresses are one endpoint: scheme, lower-case host, port and path prefix. Pure."""

from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


class EndpointError(ValueError):
    """The text is not the base address of an HTTP service; the message says why."""


def normalized_endpoint(base_url: str) -> str:
    """`scheme://host:port/prefix`, equal for two spellings of one endpoint. Raises EndpointError."""
    parts = urlsplit(base_url.strip())
    scheme = parts.scheme.lower()
    if parts.username is not None or parts.query or parts.fragment:
        raise EndpointError(f"{parts.hostname}: a base address has no user, password, query or fragment")
    if scheme not in _DEFAULT_PORTS:
        raise EndpointError(f"{base_url!r} starts neither with https:// nor with http://")
    host, port = _host(base_url, parts.hostname), _port(base_url) or _DEFAULT_PORTS[scheme]
    return f"{scheme}://{host}:{port}{_prefix(parts.path)}"


def _host(base_url: str, host: str | None) -> str:
    name = (host or "").rstrip(".")
    if not name or any(letter.isspace() for letter in name):
        raise EndpointError(f"{base_url!r} names no host")
    return f"[{name}]" if ":" in name else name


def _port(base_url: str) -> int | None:
    try:
        return urlsplit(base_url.strip()).port
    except ValueError as error:
        raise EndpointError(f"{base_url!r}: the port is not a number from 0 to 65535") from error


def _prefix(path: str) -> str:
    segments = [segment for segment in path.split("/") if segment]
    return "/" + "/".join(segments) if segments else ""
