"""Which requests carry the same content: a keyed hash of the prompts and of the assets' identities; pure.

It survives new jobs, freshly signed addresses, and every parameter that does not touch the content."""

import hmac
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_PROMPTS: Final = ("prompt", "negative_prompt")
_ASSETS: Final = ("reference_images", "reference_videos", "reference_audios", "first_frame", "last_frame")

# Query parameters that sign an address and name nothing: of S3 and its kin, Google, Azure, CloudFront,
# Aliyun, Tencent and Volcengine. What is not known here stays, since it may tell one file from another.
_SIGNING_PREFIXES: Final = ("x-amz-", "x-goog-", "x-oss-", "x-tos-", "x-bce-", "q-")
_SIGNING_NAMES: Final = frozenset(
    {"signature", "expires", "policy", "key-pair-id", "security-token", "auth_key", "token"}
    | {"awsaccesskeyid", "ossaccesskeyid", "googleaccessid"}
    | {"sig", "se", "sp", "st", "sv", "sr", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv"}
)


def fingerprint_key(secret: str) -> bytes:
    """The key of all fingerprints, derived from the installation's secret; another secret forgets them."""
    return hmac.digest(secret.encode(), b"frameyard content fingerprint", "sha256")


def content_fingerprint(request: Mapping[str, Any], key: bytes) -> str:
    """64 hexadecimal digits for a normalized request (`dispatch.requests`); they tell nothing of it."""
    content = {name: _words(request[name]) for name in _PROMPTS if request.get(name)}
    assets = {name: _identities(request[name]) for name in _ASSETS if request.get(name)}
    document = json.dumps([content, assets], sort_keys=True, ensure_ascii=True)
    return hmac.digest(key, document.encode(), "sha256").hex()


def _words(prompt: str) -> str:
    """As a reader sees it: composed, and without the blanks that editors leave."""
    return " ".join(unicodedata.normalize("NFC", prompt).split())


def _identities(assets: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[str]:
    """In their order, which prompts refer to."""
    listed = [assets] if isinstance(assets, Mapping) else assets
    return [_identity(asset) for asset in listed]


def _identity(asset: Mapping[str, Any]) -> str:
    """The checksum of the bytes where it is known, else the address without what signs it."""
    if checksum := asset.get("sha256"):
        return f"sha256:{checksum}"
    url = str(asset["url"])
    try:
        parts = urlsplit(url)
    except ValueError:  # a host that is none: as it stands
        return url
    query = [(name, value) for name, value in parse_qsl(parts.query, True) if not _signs(name.casefold())]
    return urlunsplit((parts.scheme, parts.netloc.casefold(), parts.path, urlencode(sorted(query)), ""))


def _signs(name: str) -> bool:
    return name in _SIGNING_NAMES or name.startswith(_SIGNING_PREFIXES)
