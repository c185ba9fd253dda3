"""An installation of its own for a benchmark: durable as in production, and gone afterwards."""

import base64
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import psycopg

from config import embedded

ROOT = Path(__file__).resolve().parents[2]
# What runs beside the web server, by name: arguments of `manage.py`.
DAEMONS: Final = {"traffic": ("worker", "traffic"), "control": ("worker", "control"), "pulse": ("pulse",)}


def server_of(environment: Mapping[str, str]) -> int:
    """The process id of an installation's database server."""
    with psycopg.connect(environment["DATABASE_URL"]) as connection:
        return psutil.Process(connection.info.backend_pid).ppid()


@contextmanager
def installation() -> Iterator[Mapping[str, str]]:
    """The environment for programs that work on a migrated, empty database with `fsync` on.

    DATABASE_URL is in it, for programs that use psycopg alone."""
    folder = Path(tempfile.mkdtemp(prefix="frameyard-bench-"))
    folder.chmod(0o711)  # root's server runs under another account, which must pass through
    server = embedded.start(folder)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": server.url,
        "FRAMEYARD_DATA_DIR": str(folder / "data"),
        "FRAMEYARD_SECRET_KEY": secrets.token_urlsafe(48),
        "FRAMEYARD_MASTER_KEYS": f"bench:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        "FRAMEYARD_ALLOW_PRIVATE_ADDRESSES": "1",
        "FRAMEYARD_BEHIND_TLS": "0",
    }
    try:
        migrate = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(migrate, env=environment, check=True)
        yield environment
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
