"""The installation of a data folder: its keys and its database, which belong together.

Keys are made once, with an empty database, and never again: beside old rows, new keys would leave every
stored credential unreadable. `python -m config.installation COMMAND` runs a management command in it."""

import base64
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from billing.keys import new_key
from config import embedded

ROOT = Path(__file__).resolve().parent.parent
KEYS_FILE = "keys.env"
_KEYS_DRAFT = "keys.new"  # the name begins so; a start that was killed leaves one behind
DATABASE_FILE = "database"
EMBEDDED = "embedded"
_ENTRIES = {
    KEYS_FILE,
    DATABASE_FILE,
    "postgres",
    "postgres.new",
    "socket",
    "owner.lock",
    "media",
    "static",
    "logs",
    "benchmarks",
}
SECRETS = ("FRAMEYARD_SECRET_KEY", "FRAMEYARD_MASTER_KEYS")
DEMO_API_KEY, DEMO_PASSWORD = "FRAMEYARD_DEMO_API_KEY", "FRAMEYARD_DEMO_PASSWORD"


class InstallationError(Exception):
    """This folder can't be used as it is; the message says what to do."""


@dataclass(frozen=True)
class Installation:
    """A data folder that is ours, with the keys that belong to its database."""

    home: Path
    keys: Mapping[str, str]
    given_url: str  # DATABASE_URL of a server that is not ours to start; empty: the embedded one

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of its database, started here unless it runs already.

        Raises InstallationError when another or an empty database stands where one with rows was."""
        if self.given_url:
            yield self._checked(self.given_url)
        elif embedded.is_running(self.home):
            yield embedded.url_of(self.home)
        else:
            server = embedded.start(self.home)
            try:
                yield self._checked(server.url)
            finally:
                server.stop()

    def environment(self, url: str) -> dict[str, str]:
        """What every process of the installation gets; what the shell sets goes before what we keep."""
        kept = {name: self.keys[name] for name in SECRETS if name in self.keys}
        given = {name: value for name, value in os.environ.items() if value}
        return kept | given | {"DATABASE_URL": url, "FRAMEYARD_DATA_DIR": str(self.home)}

    def remember_database(self) -> None:
        """From now on an empty database is a loss and not a beginning."""
        (self.home / DATABASE_FILE).write_text(self._name + "\n")

    @property
    def _name(self) -> str:
        parts = urlsplit(self.given_url)
        return f"{parts.hostname or ''}:{parts.port or ''}{parts.path}" if self.given_url else EMBEDDED

    def _checked(self, url: str) -> str:
        if (self.home / DATABASE_FILE).exists() and is_empty(url):
            raise InstallationError(
                f"The database of {self.home} is empty, and it was not before. Restore it, "
                "or begin anew with another --data-dir."
            )
        return url


def open_installation(home: Path, environment: Mapping[str, str]) -> Installation:
    """The installation of this folder; a new or empty folder becomes one, and gets its keys.

    Raises InstallationError for a folder of somebody else's, for a database without its keys, for keys
    without their database, and for a folder that belongs to another database."""
    home, url = home.resolve(), environment.get("DATABASE_URL", "")
    _refuse_foreign(home)
    keys_path = home / KEYS_FILE
    if keys_path.exists():
        installation = Installation(home, read_keys(keys_path, environment), url)
        _refuse_other_database(installation)
        return installation
    _refuse_database_without_keys(home, url, environment)
    home.mkdir(parents=True, exist_ok=True, mode=0o711 if os.getuid() == 0 else 0o700)
    return Installation(home, _make_keys(keys_path, environment), url)


def is_empty(url: str) -> bool:
    """Whether no migration ever ran there. Raises InstallationError when the server does not answer."""
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            row = connection.execute("SELECT to_regclass('django_migrations')").fetchone()
    except psycopg.OperationalError as error:
        raise InstallationError(f"The server that DATABASE_URL names does not answer: {error}") from error
    return row is None or row[0] is None


def read_keys(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a file that systemd and a shell can read too; the environment may hold the rest."""
    try:
        lines = path.read_text().splitlines()
    except PermissionError:
        raise InstallationError(f"{path} belongs to another account; run as that one.") from None
    keys = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    missing = [name for name in SECRETS if not keys.get(name) and not environment.get(name)]
    if missing:
        raise InstallationError(f"{path} lacks {', '.join(missing)}. Restore the file from a backup.")
    return keys


def _refuse_foreign(home: Path) -> None:
    if not home.exists() or (home / KEYS_FILE).exists():
        return
    if not home.is_dir():
        raise InstallationError(f"{home} is not a folder.")
    foreign = sorted(path.name for path in home.iterdir() if not _is_ours(path.name))
    if foreign:
        raise InstallationError(
            f"{home} is not Frameyard's: it holds {', '.join(foreign[:3])}. Choose an empty or a new folder."
        )


def _is_ours(name: str) -> bool:
    return name.split(".log")[0] in _ENTRIES or name.startswith(_KEYS_DRAFT)


def _refuse_other_database(installation: Installation) -> None:
    note = installation.home / DATABASE_FILE
    known = note.read_text().strip() if note.exists() else ""
    if known and known != installation._name:
        raise InstallationError(
            f"{installation.home} belongs to the database {known}, not to {installation._name}. "
            "Choose another --data-dir, or the database that it belongs to."
        )
    if known == EMBEDDED and not embedded.exists(installation.home):
        raise InstallationError(
            f"{installation.home} holds keys, and the database that they belong to is gone. Restore "
            f"{installation.home / 'postgres'}, or begin anew with another --data-dir."
        )


def _refuse_database_without_keys(home: Path, url: str, environment: Mapping[str, str]) -> None:
    if all(environment.get(name) for name in SECRETS):
        return
    if embedded.exists(home) or (url and not is_empty(url)):
        raise InstallationError(
            f"There is a database, and {home / KEYS_FILE} with its keys is missing. Nothing was changed: new "
            "keys could not read what it stores. Restore that file from a backup, or set "
            f"{' and '.join(SECRETS)}, or begin anew with another --data-dir and an empty database."
        )


def _make_keys(path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    # What the environment gives is not ours to keep, and a second key beside it could only be the wrong one.
    keys = {name: value for name, value in _new_keys().items() if not environment.get(name)}
    draft = _draft_keys(path.parent, keys)
    try:
        # Unlike a rename, a link replaces nothing: of starts at once one gives the keys, and all have these.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return read_keys(path, environment)


def _draft_keys(home: Path, keys: Mapping[str, str]) -> Path:
    number, draft = tempfile.mkstemp(prefix=f"{_KEYS_DRAFT}.", dir=home)  # only its owner can read it
    with os.fdopen(number, "w") as file:
        file.write(
            "# The keys of this installation's database. Keep a copy apart from it, and never lose them.\n"
        )
        file.writelines(f"{name}={value}\n" for name, value in keys.items())
        file.flush()
        os.fsync(file.fileno())
    return Path(draft)


def _new_keys() -> dict[str, str]:
    return {
        "FRAMEYARD_SECRET_KEY": secrets.token_urlsafe(48),
        "FRAMEYARD_MASTER_KEYS": f"first:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        DEMO_API_KEY: new_key().secret,
        DEMO_PASSWORD: secrets.token_urlsafe(12),
    }


def main(arguments: list[str]) -> int:
    home = Path(os.environ.get("FRAMEYARD_DATA_DIR") or ROOT / ".data")
    try:
        installation = open_installation(home, os.environ)
        with installation.database() as url:
            code = _run_command(arguments, installation.environment(url))
            if not is_empty(url):
                installation.remember_database()
            return code
    except (InstallationError, embedded.PostgresUnavailable) as error:
        print(error, file=sys.stderr)
        return 1


def _run_command(arguments: list[str], environment: Mapping[str, str]) -> int:
    command = subprocess.Popen([sys.executable, str(ROOT / "manage.py"), *arguments], env=environment)
    # The terminal sends Ctrl-C to the command as well; it decides, and the database stays up until it ended.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda _number, _frame: command.terminate())
    return command.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
