"""`manage.py demo` as somebody types it: a delivered job, an end without remains, a start after any end."""

import os
import random
import re
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.journeys.processes import PATIENCE_S, Running, all_gone, busy, kill, manage, running, wait_until

pytestmark = pytest.mark.journey
SERVING = "Serving. Ctrl-C stops everything."
START_WITHIN_S = 2 * PATIENCE_S  # a quiet machine needs some ten


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data folder that the starts of this module share, as the starts of a user do."""
    folder = Path(tempfile.mkdtemp(prefix="frameyard-journey-"))
    folder.chmod(0o711)
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.fixture
def environment() -> dict[str, str]:
    """That of a shell which knows nothing of this test run."""
    ours = ("FRAMEYARD_", "DATABASE_URL", "DJANGO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def free_port() -> int:
    """Below those that a system gives by itself: nobody comes by it in passing before it is used."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no port is free")


def command(home: Path, *options: str, port: int = 0) -> list[str]:
    ports = ["--port", str(port or free_port()), "--simulator-port", str(free_port())]
    return manage("demo", "--data-dir", str(home), *ports, *options)


def found(pattern: str, demo: Running) -> str:
    match = re.search(pattern, demo.output())
    assert match, demo.output()
    return match[1]


def jobs_of(api: str, key: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {key}"}
    answer = requests.get(f"{api}jobs/", headers=headers, timeout=PATIENCE_S)
    return list(answer.json()["results"])


def test_it_delivers_a_job_per_modality_and_ctrl_c_leaves_no_process(
    home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with running(command(home), environment, tmp_path / "log") as demo:
        demo.says(SERVING, START_WITHIN_S)
        text = demo.output()
        for modality in ("video", "image"):
            assert re.search(rf"^{modality} job_\w+: succeeded after", text, re.MULTILINE)
        assert text.count("1. Hard capability") == text.count("4. At most one switch of supply") == 2
        files = re.findall(r"Delivered: (\S+)", text)
        assert len(files) == 2
        assert all(Path(file).stat().st_size for file in files)
        url, key = found(r"API +(\S+)", demo), found(r"key (fy_live_\w+)", demo)
        jobs = jobs_of(url, key)
        assert [job["state"] for job in jobs] == ["succeeded", "succeeded"]
        family = demo.family()
        for _ in range(2):
            kill(demo.pid, signal.SIGINT)
        assert wait_until(lambda: all_gone(family), PATIENCE_S, "every process ends") < busy(10)
    assert stat.S_IMODE((home / "keys.env").stat().st_mode) == 0o600


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="only Linux tells a child of its parent's death"
)
def test_killed_it_leaves_no_process_and_the_next_start_keeps_rows_and_keys(
    home: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    with running(command(home, port=port), environment, tmp_path / "first") as demo:
        demo.says("Sample jobs", START_WITHIN_S)
        key, family = found(r"key (fy_live_\w+)", demo), demo.family()
        kill(demo.pid)
        wait_until(lambda: all_gone(family), busy(10), "every process ends with the one that started it")
    with running(command(home, port=port), environment, tmp_path / "second") as demo:
        demo.says(SERVING, START_WITHIN_S)
        assert found(r"key (fy_live_\w+)", demo) == key
        jobs = jobs_of(f"http://127.0.0.1:{port}/api/v1/", key)
        assert len(jobs) >= 4


def test_without_demo_it_serves_an_empty_installation(
    environment: dict[str, str], tmp_path: Path, home: Path
) -> None:
    empty, port = home.with_name("empty"), free_port()
    with running(command(empty, "--no-demo", port=port), environment, tmp_path / "log") as demo:
        demo.says(SERVING, START_WITHIN_S)
        assert "fy_live_" not in demo.output()
        assert not any("simulator" in member.cmdline() for member in demo.family())
        assert requests.get(f"http://127.0.0.1:{port}/console/login/", timeout=PATIENCE_S).status_code == 200


def test_a_folder_of_somebody_elses_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").touch()
    with running(command(tmp_path / "data"), environment, tmp_path / "log") as demo:
        assert demo.process.wait(PATIENCE_S) == 1
        assert "is not Frameyard's: it holds thesis.tex" in demo.output()


def test_a_busy_port_is_named_with_the_option_that_changes_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with running(command(tmp_path / "data", port=port), environment, tmp_path / "log") as demo:
            assert demo.process.wait(PATIENCE_S) == 1
            assert f"Port {port} is in use by another program; choose another with --port" in demo.output()
