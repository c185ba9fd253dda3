"""A channel's credential: sealed under the row's own name, opened only where it is used."""

from dataclasses import dataclass, field

from django.conf import settings

from catalog.models import Channel
from catalog.vault import MasterKeys, parse_master_keys, reseal, seal, unseal

_SHOWN = 4
_LEAST_TO_SHOW = 12  # characters: of a shorter secret the last four say too much


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret as it is handed over, and where it came from (e.g. "env:NAME"; empty: typed in)."""

    secret: str = field(repr=False)
    reference: str = ""

    @property
    def hint(self) -> str:
        """The last four characters, all that is ever shown; nothing of a short secret."""
        return self.secret[-_SHOWN:] if len(self.secret) >= _LEAST_TO_SHOW else ""


def store_credential(channel: Channel, credential: Credential) -> None:
    """Puts the sealed secret into the row's fields; the caller saves. VaultError without a master key."""
    channel.credential = seal(credential.secret, _row(channel), _keys())
    channel.credential_hint = credential.hint
    channel.credential_reference = credential.reference


def read_credential(channel: Channel) -> str:
    """The secret itself, "" where the channel has none. Raises VaultError where it does not open."""
    return unseal(channel.credential, _row(channel), _keys()) if channel.credential else ""


def reseal_credential(channel: Channel) -> bool:
    """Puts the row's secret under the current master key; false where it is already. The caller saves."""
    before = channel.credential
    channel.credential = reseal(before, _row(channel), _keys())
    return channel.credential != before


def _row(channel: Channel) -> str:
    return f"channel:{channel.public_id}:credential"


def _keys() -> MasterKeys:
    return parse_master_keys(settings.MASTER_KEYS)
