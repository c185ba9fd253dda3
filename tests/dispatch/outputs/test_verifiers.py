"""The walls around the parser of media, and the process that stands ready within them."""

import ast
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatch.outputs import media, verifiers
from dispatch.outputs.limits import MediaLimits
from dispatch.outputs.media import Invalid, Verified, verify
from tests.dispatch.outputs import media_files
from tests.dispatch.outputs.loopback import Loopback

LIMITS = MediaLimits()
VERIFIER = verifiers.PROGRAM


def test_even_the_playlist_demuxer_itself_could_open_neither_file_nor_socket(
    loopback: Loopback, mp4: Path, written: Path
) -> None:
    for target in (mp4.as_uri(), str(mp4), loopback.url("/segment.ts")):
        written.write_bytes(media_files.playlist(target))
        for parser in ("hls", "concat"):
            assert _verifier_report(written, parser) == Invalid("undecodable")
    written.write_bytes(f"ffconcat version 1.0\nfile '{mp4}'\n".encode())
    assert _verifier_report(written, "concat") == Invalid("undecodable")
    assert loopback.requests == []


def test_before_the_first_byte_is_parsed_the_process_has_lost_files_sockets_and_children() -> None:
    outcomes = _in_verifier(
        """
        import os, resource, socket

        def outcome(attempt, *arguments):
            try:
                attempt(*arguments)
            except (OSError, ValueError) as error:
                return type(error).__name__
            return "possible"

        verifier.lock_in(verifier.Bounds(max_pixels=1, max_duration_ms=1, cpu_s=5, memory_bytes=2**30))
        print([
            outcome(open, "/dev/null"),
            outcome(socket.socket),
            outcome(os.fork),
            outcome(resource.setrlimit, resource.RLIMIT_NOFILE, (100, 100)),
            outcome(os.setuid, 0),
        ])
        """
    )
    assert outcomes == ["OSError", "OSError", "BlockingIOError", "ValueError", "PermissionError"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list descriptors")
def test_a_child_holds_its_file_its_report_and_nothing_else(tmp_path: Path) -> None:
    outcome = _in_verifier(
        f"""
        import os, socket

        ours, theirs = socket.socketpair()
        file = os.open({os.devnull!r}, os.O_RDONLY)
        report = os.open({str(tmp_path / "report")!r}, os.O_WRONLY | os.O_CREAT)
        order = dict(kind="image", parser="PNG", max_pixels=1, max_duration_ms=1, cpu_s=5, memory_bytes=2**30)

        def held(*_):
            return [os.path.basename(os.readlink(f"/proc/self/fd/{{number}}")) for number in (0, 1)], [
                number for number in range(3, 100) if os.path.exists(f"/proc/self/fd/{{number}}")
            ]

        verifier.lock_in = lambda _: None
        verifier.report_on = held
        child = os.fork()
        if not child:
            verifier.examine(order, file, report)
        os.waitpid(child, 0)
        print([open({str(tmp_path / "report")!r}).read()])
        """
    )
    assert outcome == ['[["null", "report"], []]\n']


def test_the_parser_imports_neither_django_nor_anything_of_ours() -> None:
    imported = _in_verifier("import sys; print(sorted({name.split('.')[0] for name in sys.modules}))")
    assert {"av", "PIL"} <= set(imported)
    assert not {"django", "dispatch", "config", "catalog", "requests"} & set(imported)


def test_the_parser_sees_nothing_of_our_environment(
    mp4: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}
    really_start = subprocess.Popen

    def start(order: list[str], **options: object) -> object:
        seen.update(options)
        return really_start(order, **options)  # type: ignore[call-overload]

    monkeypatch.setenv("FRAMEYARD_MASTER_KEYS", "canary")
    monkeypatch.setattr(verifiers.subprocess, "Popen", start)
    assert isinstance(verify(mp4, "video", LIMITS), Verified)
    assert (seen["env"], seen["cwd"]) == ({}, "/")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No verifier stands ready yet, and none is left behind."""
    idle = verifiers._Idle()
    monkeypatch.setattr(verifiers, "_idle", [idle])
    yield
    idle.end_those_idle_for(0)


def test_one_process_serves_file_after_file_and_a_lost_one_is_replaced(mp4: Path, fresh: None) -> None:
    assert isinstance(verify(mp4, "video", LIMITS), Verified)
    first = _standing_ready()
    assert isinstance(verify(mp4, "video", LIMITS), Verified)
    assert _standing_ready() is first
    assert first.files == 2
    first._process.kill()
    assert isinstance(verify(mp4, "video", LIMITS), Verified)
    assert _standing_ready() is not first


def test_a_process_ends_after_so_many_files_and_when_it_was_idle_for_long(
    mp4: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify(mp4, "video", LIMITS)
    first = _standing_ready()
    verifiers._idle[0].end_those_idle_for(3600)
    assert _standing_ready() is first
    monkeypatch.setattr(verifiers, "_FILES", 2)
    verify(mp4, "video", LIMITS)
    assert first._process.returncode is not None
    verify(mp4, "video", LIMITS)
    second = _standing_ready()
    verifiers._idle[0].end_those_idle_for(0)
    assert second._process.returncode is not None


def test_a_forked_process_starts_verifiers_of_its_own(mp4: Path, fresh: None) -> None:
    verify(mp4, "video", LIMITS)
    child = os.fork()
    if not child:
        os._exit(len(verifiers._idle[0]._waiting))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_verifier_that_can_not_be_started_says_nothing_about_the_file(
    mp4: Path, tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    monkeypatch.setattr(verifiers, "PROGRAM", broken)
    with pytest.raises(OSError):
        verify(mp4, "video", LIMITS)


def _standing_ready() -> verifiers.Verifier:
    (waiting,) = verifiers._idle[0]._waiting
    return waiting


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"not json",
        b"[]",
        b'{"width": "160", "height": 96, "duration_ms": 1}',
        b'{"width": 1, "height": 1}',
        b'{"width": -1, "height": 1, "duration_ms": 5}',
    ],
)
def test_a_report_that_makes_no_sense_proves_nothing(
    report: bytes, mp4: Path, tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    impostor = tmp_path / "impostor.py"
    impostor.write_text(
        "import os, socket\n"
        "orders = socket.socket(fileno=0)\n"
        "_, (_, report), *_ = socket.recv_fds(orders, 65_536, 2)\n"
        f"os.write(report, {report!r})\n"
        "orders.sendall(b'0')\n"
    )
    monkeypatch.setattr(verifiers, "PROGRAM", impostor)
    assert isinstance(verify(mp4, "video", LIMITS), Invalid)


def _verifier_report(path: Path, parser: str) -> object:
    return media._run_verifier(path, media.Sniffed("video", "video/mp4", parser), LIMITS)


def _in_verifier(program: str) -> list[object]:
    """What `program` prints, as Python's own text of a list, with the verifier loaded as `verifier`."""
    loading = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('verifier', {str(VERIFIER)!r})\n"
        "verifier = sys.modules['verifier'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(verifier)\n"
    )
    order = [sys.executable, "-I", "-c", loading + textwrap.dedent(program)]
    ended = subprocess.run(order, capture_output=True, check=True, text=True)
    found = ast.literal_eval(ended.stdout)
    assert isinstance(found, list)
    return found
