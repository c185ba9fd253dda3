"""Child processes that never outlive us, in groups of their own that can be swept."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def signal_when_parent_dies(number: int) -> None:
    """Asks the kernel to send us this signal when our parent's thread ends; Linux only, elsewhere nothing."""
    if _LIBC is not None and _LIBC.prctl(_PR_SET_PDEATHSIG, int(number)) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def die_with_parent(number: int) -> Callable[[], None]:
    """A `preexec_fn`: the child gets this signal when we end, in whatever way. Start it from the main thread:
    the kernel watches the thread that forked."""
    parent = os.getpid()

    def arm() -> None:
        signal_when_parent_dies(number)
        if os.getppid() != parent:
            os._exit(1)  # we were too late: the parent ended before the kernel was asked

    return arm


def stop_group(process: subprocess.Popen[bytes], number: int, within_s: float) -> int:
    """Sends the leader one signal, waits, and kills what is left of its group; returns its exit code.

    One signal only: several at once can deadlock a program whose handler takes a lock."""
    if process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
    return sweep_group(process)


def sweep_group(process: subprocess.Popen[bytes]) -> int:
    """Kills everything that is left in the group that this process leads; returns its exit code."""
    kill_group(process.pid)
    return process.wait()


def kill_group(leader: int) -> None:
    """Kills every process of the group that this one leads or led."""
    # PermissionError is what macOS answers when only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether a process with this number runs (one that nobody waited for yet counts as ended on Linux)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] == b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
