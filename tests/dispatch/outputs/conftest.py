"""Connections are real but stay on loopback: any other is noted and refused, as by a closed firewall."""

import resource
import signal
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from dispatch.outputs import pinned
from dispatch.outputs.limits import FetchLimits
from tests.dispatch.outputs import media_files
from tests.dispatch.outputs.loopback import Loopback, serving


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were connected to, or would have been."""
    tried: list[str] = []
    really_connect = socket.create_connection

    def connect(address: tuple[str, int], *rest: Any) -> socket.socket:
        tried.append(address[0])
        if not ip_address(address[0]).is_loopback:
            raise ConnectionRefusedError("tests never leave loopback")
        return really_connect(address, *rest)

    monkeypatch.setattr(pinned.socket, "create_connection", connect)
    return tried


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with serving() as server:
        yield server


@pytest.fixture
def public_only() -> FetchLimits:
    return FetchLimits(max_bytes=1_000_000, deadline_s=5)


@pytest.fixture
def private_too() -> FetchLimits:
    return FetchLimits(max_bytes=1_000_000, deadline_s=5, allow_private=True)


@pytest.fixture(scope="session")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return media_files.video(tmp_path_factory.mktemp("media") / "clip.mp4")


@pytest.fixture
def file_size_limit() -> Iterator[None]:
    """Files of this process end at 64 KiB, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error, as ENOSPC is, instead of the signal
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "output.mp4"
