"""pytest's own database: an embedded PostgreSQL for one run, unless DATABASE_URL names a server.

It starts before Django reads its settings; the processes of pytest-xdist share it through the environment."""

import base64
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from config import binaries, embedded

_FOLDER_PREFIX = "frameyard-tests-"
_BEGINNING_S = 60  # a run that begins has its folder for a moment before it holds its lock
_SERVER = pytest.StashKey[embedded.Server]()
_FOLDER = pytest.StashKey[Path]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _prepare(early_config)
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(_SERVER, None)
    if server:
        server.stop()
    folder = config.stash.get(_FOLDER, None)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(config: pytest.Config) -> None:
    _sweep_folders_of_killed_runs()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
    folder.chmod(0o711)  # root's server runs under another account, which must pass through
    config.stash[_FOLDER] = folder
    os.environ.update(_environment(folder))
    if not os.environ.get("DATABASE_URL"):
        config.stash[_SERVER] = embedded.start(folder, durable=False)
        os.environ["DATABASE_URL"] = config.stash[_SERVER].url


def _environment(folder: Path) -> dict[str, str]:
    """The settings of a run: nothing of the shell that started it may change what the tests see."""
    for name in [name for name in os.environ if name.startswith("FRAMEYARD_")]:
        if name != binaries.PLACE:
            del os.environ[name]
    return {
        "FRAMEYARD_DATA_DIR": str(folder / "data"),
        "FRAMEYARD_SECRET_KEY": "only-for-tests-" * 4,
        "FRAMEYARD_MASTER_KEYS": f"test:{base64.b64encode(bytes(range(32))).decode()}",
        "FRAMEYARD_ALLOW_PRIVATE_ADDRESSES": "1",
        "FRAMEYARD_BEHIND_TLS": "0",
        "FRAMEYARD_DEBUG": "1",  # static files as they lie in the tree, not as collected
    }


def _sweep_folders_of_killed_runs() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(PermissionError, FileNotFoundError):
            lock = folder / "owner.lock"
            is_old = time.time() - lock.stat().st_mtime > _BEGINNING_S
            if is_old and not embedded.is_running(folder):
                shutil.rmtree(folder, ignore_errors=True)
