"""Which URLs and which addresses may be fetched: pure rules against server-side request forgery.

A URL is read once, here, into a `Target`; what is connected to is built from that value and never from
the text again, so two parsers cannot disagree about the host. Names are judged before, addresses after
resolving."""

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

MAX_URL_CHARACTERS = 8192  # signed URLs of object stores reach 2 000

_DEFAULT_PORTS = {"https": 443, "http": 80}
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# Whitespace and control characters are dropped by some parsers, a backslash is a slash to others.
_CONFUSING = re.compile(r"[\x00-\x20\x7f\\]")
_LOCAL_SUFFIXES = (
    *("localhost", "localdomain", "local", "internal", "intranet", "private"),
    *("lan", "home", "corp", "home.arpa", "onion"),
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# Carries an IPv4 address of anybody's choice; Pythons before 3.12.4 call it global.
_SIX_TO_FOUR = IPv6Network("2002::/16")
# Public by the registry, and still no address of a stranger: Azure's host agent, the 6to4 relay anycast.
_NOT_STRANGERS = (IPv4Network("168.63.129.16/32"), IPv4Network("192.88.99.0/24"))


class Refusal(StrEnum):
    """Why a fetch was refused; stable, for logs and operators."""

    BAD_URL = "bad_url"
    SCHEME = "scheme_not_allowed"
    CREDENTIALS = "credentials_in_url"
    PORT = "port_not_allowed"
    HOST = "bad_host"
    NUMERIC_HOST = "odd_numeric_host"
    LOCAL_NAME = "local_name"
    PRIVATE_ADDRESS = "private_address"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    TOO_LARGE = "too_large"
    ENCODED_BODY = "encoded_body"


@dataclass(frozen=True, slots=True)
class Target:
    """Where one request goes. `resource` is the path and query as sent, percent-encoded."""

    scheme: str
    host: str  # lower case, without the final dot; an IPv6 literal without brackets
    port: int
    resource: str

    @property
    def literal(self) -> str | None:
        """The host, if it is an address and needs no resolving."""
        return self.host if _is_address(self.host) else None

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host_header}"

    @property
    def url(self) -> str:
        return f"{self.origin}{self.resource}"


def read_url(url: str) -> Target | Refusal:
    """The URL's parts, or why it can't be read in one way only. Whether it may be fetched: `judge_target`."""
    if not url or len(url) > MAX_URL_CHARACTERS or _CONFUSING.search(url):
        return Refusal.BAD_URL
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return Refusal.BAD_URL
    if parts.scheme not in _DEFAULT_PORTS:
        return Refusal.SCHEME
    if "@" in parts.netloc:
        return Refusal.CREDENTIALS
    if port == 0:
        return Refusal.PORT
    host = _read_host(parts.hostname or "", bracketed="[" in parts.netloc)
    if isinstance(host, Refusal):
        return host
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], _percent_encoded(resource))


def origin_of(base_url: str) -> str | None:
    """An endpoint's origin as `FetchLimits.trusted_origins` wants it; None if the text is no such URL."""
    target = read_url(base_url)
    return None if isinstance(target, Refusal) else target.origin


def judge_target(target: Target, ports: frozenset[int], *, private_allowed: bool) -> Refusal | None:
    """Scheme, port and name of a target; an address in place of a name is judged too."""
    if target.literal is not None:
        refusal = judge_address(target.literal, private_allowed=private_allowed)
        if refusal is not None:
            return refusal
    if private_allowed:
        return None
    if target.scheme != "https":
        return Refusal.SCHEME
    if target.port not in ports:
        return Refusal.PORT
    return Refusal.LOCAL_NAME if target.literal is None and _is_local_name(target.host) else None


def judge_address(address: str, *, private_allowed: bool) -> Refusal | None:
    """One address that a name resolved to, or a literal host."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return Refusal.PRIVATE_ADDRESS
    if _is_public(parsed) or (private_allowed and _is_own_network(parsed)):
        return None
    return Refusal.PRIVATE_ADDRESS


def _read_host(host: str, *, bracketed: bool) -> str | Refusal:
    if bracketed:
        # An address with a zone (`fe80::1%eth0`) names an interface of this machine.
        return str(ip_address(host)) if "%" not in host and _is_address(host) else Refusal.HOST
    name = host.removesuffix(".")
    labels = name.split(".")
    # Names in other scripts come as punycode: full-width digits and dots would become 127.0.0.1 later on.
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return Refusal.HOST
    if _reads_as_number(labels[-1]) and not _is_address(name):
        # 2130706433, 0x7f.1, 0177.0.0.1, 127.1: an address to inet_aton, a name to everybody else.
        return Refusal.NUMERIC_HOST
    return name


def _reads_as_number(label: str) -> bool:
    return re.fullmatch(r"[0-9]+|0x[0-9a-f]*", label) is not None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_local_name(host: str) -> bool:
    return "." not in host or any(host.endswith(f".{suffix}") for suffix in _LOCAL_SUFFIXES)


def _percent_encoded(resource: str) -> str:
    """Only what http can't carry: a signed URL must arrive byte for byte."""
    return "".join(character if character.isascii() else quote(character) for character in resource)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        embedded = _embedded(address)
        if embedded is not None:
            return _is_public(embedded)
        return address in _GLOBAL_UNICAST and address.is_global and address not in _SIX_TO_FOUR
    if any(address in network for network in _NOT_STRANGERS):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _is_own_network(address: IPv4Address | IPv6Address) -> bool:
    """Loopback and private networks, never link-local: the cloud's metadata stays closed in every mode."""
    if isinstance(address, IPv6Address):
        embedded = _embedded(address)
        if embedded is not None:
            return _is_own_network(embedded)
        return address.is_loopback or address in IPv6Network("fc00::/7")
    private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8")
    return any(address in IPv4Network(network) for network in private)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that is really reached: v4-mapped, or through a NAT64 gateway."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
