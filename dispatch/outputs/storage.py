"""Our own copies, one file per output, below one directory.

An object's name follows from what it is the output of, so a worker that died between the rename and the
commit finds it again. The first writer wins: content never changes under a checksum that was recorded."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

_SAFE_NAME_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz_-")


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in the store; `name` is relative to its root and is what a row keeps."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MediaStore:
    """`root` may be shared by several hosts; it must be one file system that knows hard links."""

    root: Path

    def incoming(self) -> Path:
        """Where parts are written before they are placed: the same file system, never served."""
        return _made(self.root / "incoming")

    def find(self, name: str) -> Stored | None:
        """What an earlier try left under this name, hashed again: nobody noted it down."""
        path = self.path(name)
        return Stored(name, path.stat().st_size, _sha256(path)) if path.is_file() else None

    def place(self, part: Path, name: str, sha256: str) -> Stored:
        """Move a finished part, whose hash is known, to its name, durably, and say what lies there now.

        If the name is taken, the part is dropped and the answer describes what was there before.
        Raises OSError.
        """
        target = self.path(name)
        _made(target.parent)
        _sync(part)
        try:
            os.link(part, target)  # a rename would replace what another worker has just recorded
        except FileExistsError:
            sha256 = _sha256(target)
        part.unlink()
        _sync(target.parent)
        return Stored(name, target.stat().st_size, sha256)

    def path(self, name: str) -> Path:
        """The file of an object, for serving; it need not exist. Raises ValueError for a name not ours."""
        segments = name.split("/")
        if not all(segment and _SAFE_NAME_CHARACTERS.issuperset(segment) for segment in segments):
            raise ValueError(f"{name!r} is no name of a stored object")
        return self.root.joinpath(*segments)

    def remove(self, name: str) -> None:
        """Repeatable: a file that is gone already is what was wanted."""
        self.path(name).unlink(missing_ok=True)

    def sweep_incoming(self, older_than: float) -> int:
        """Remove parts that dead workers left, last written before `older_than` (Unix seconds); how many."""
        return sum(_removed_if_stale(part, older_than) for part in self.incoming().iterdir())


def output_name(attempt_id: str, number: int) -> str:
    """The object of an attempt's output `number`, from 1: always the same one."""
    # The end of a public id is random, its beginning the time: only the end spreads over directories.
    return f"outputs/{attempt_id[-2:]}/{attempt_id}-{number}"


def input_name(customer_id: int, sha256: str) -> str:
    """The object of a customer's file: the same bytes of one customer are one object."""
    return f"inputs/{sha256[:2]}/{customer_id}-{sha256}"


def _removed_if_stale(part: Path, older_than: float) -> bool:
    try:
        if part.stat().st_mtime >= older_than:
            return False
        part.unlink()
    except FileNotFoundError:
        return False  # placed by its writer, or swept by another host, since the directory was listed
    return True


def _made(directory: Path) -> Path:
    directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    return directory


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """To the disk: a file's bytes, or a directory's entries."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
