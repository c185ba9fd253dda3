"""One installation in one process: catalogue, customers, workers, network and provider, ready for many lives.

Everything that the product reads of clocks, dice and sockets is replaced here, from outside."""

import logging
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3.connection
import urllib3.util.connection
import yaml
from django.conf import settings
from rest_framework.test import APIClient

import catalog.ids
import catalog.providers.flight
import dispatch.departures
import dispatch.heartbeat
import dispatch.outputs.fetching
import dispatch.outputs.pinned
import dispatch.outputs.rehosting
import dispatch.outputs.storage
import dispatch.polling
from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.audit import Actor
from catalog.providers import http
from dispatch import live_catalogue, selection_facts
from dispatch.outputs.media import verify
from dispatch.services import follow
from dispatch.services.import_catalogue import apply_import, plan_import
from tests.simulation import process_clock
from tests.simulation.adversary import Adversary
from tests.simulation.database import Awaits, Database
from tests.simulation.provider import Provider
from tests.simulation.scheduler import Scheduler, Watchdog, Worker
from tests.simulation.wire import Network

WORKERS = 4
CANARIES = {"beijing": "canary-credential-beijing-7731", "singapore": "canary-credential-singapore-7732"}
OPERATOR = Actor("simulation", "command")
_PLAIN, _SECURE = "http://10.1.0.1:8000", "https://10.1.0.2"
_POLICY = {
    "dispatch_deadline_s": 240,
    "max_execution_s": 400,
    "uncertain_deadline_s": 400,
    "quarantine_s": 120,
}
_KEYS_OF_TESTS = ("main", "doomed", "other")


class Log(logging.Handler):
    """Every line that the product writes, for canaries and for what broke."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self.broken: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        extra = {name: value for name, value in record.__dict__.items() if name not in _PLAIN_FIELDS}
        self.lines.append(f"{record.levelname} {record.getMessage()} {extra}")
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            self.lines.append(repr(error))
            if not is_expected(error):
                self.broken.append(f"{record.getMessage()}: {told(error)}")


_PLAIN_FIELDS = frozenset(logging.makeLogRecord({}).__dict__)


def is_expected(error: BaseException) -> bool:
    """A task may end so when its database is taken away; anything else is a defect."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_expected(each) for each in error.exceptions)
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__name__ in ("OperationalError", "InterfaceError", "TransactionManagementError"):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def told(error: BaseException) -> str:
    """The error with the innermost place of ours."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if str(settings.BASE_DIR) in name and ".venv" not in name:
            place = f" at {Path(name).name}:{trace.tb_lineno} {trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:200]}{place}"


@dataclass
class Installation:
    """Made once a process; `begin` gives the next life the same rows, the same clock, other dice."""

    log: Log = field(default_factory=Log)
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rewritten: Callable[[str], str] = str
        self.dice = random.Random(0)
        _install_catalogue()
        self.secrets, self.keys = _customers()
        self.database = Database()
        self.database.prepare()
        self.awaits = Awaits(self.database, lambda sql: self.rewritten(sql))
        self.scheduler = Scheduler(self.database.waits_for_lock, self.awaits.finished, WORKERS)
        self.awaits.over(self.scheduler)
        self.adversary = Adversary(self.scheduler, self.awaits.end_session, self.tell)
        self.scheduler.at_point = self.adversary.at_point
        self.provider = Provider(
            self.scheduler, self.database, self.adversary.decide, self.adversary.odd, self.tell
        )
        self.network = Network(self.scheduler, self.provider.answer, self.adversary.weather)
        self._replace()

    def begin(self, seed: int, left_out: frozenset[int]) -> None:
        self.history.clear()
        self.log.lines.clear()
        self.log.broken.clear()
        self.network.called_in_transaction.clear()
        self.database.restore()
        shutil.rmtree(settings.MEDIA_DIR, ignore_errors=True)  # a life lived again has the same ids
        self.scheduler.begin()
        self._counted = sum(worker.statements for worker in self.scheduler.workers)
        self.dice = random.Random(f"life {seed}")
        random.seed(seed)
        live_catalogue._kept.clear()
        selection_facts._kept_statistics.clear()
        selection_facts._kept_p95.clear()
        self.adversary.begin(seed, left_out)
        self.adversary.started_at(self.scheduler.now.timestamp())
        self.provider.begin(seed)

    @property
    def points(self) -> int:
        """Statements of this life."""
        return sum(worker.statements for worker in self.scheduler.workers) - self._counted

    def tell(self, line: str) -> None:
        worker = self.scheduler.current
        passed = (self.scheduler.now - process_clock.START).total_seconds()
        self.history.append(f"{passed:9.3f} {worker.name if worker else '--'} {line}")

    def client(self, key: str = "main") -> APIClient:
        client = APIClient(raise_request_exception=False, HTTP_HOST="localhost")
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.secrets[key]}")
        return client

    def run_in(self, worker: Worker, doing: str, task: Callable[[], None]) -> None:
        """Runs in the worker until it gives way."""

        def attached() -> None:
            self.awaits.attach(worker)
            http._kept.sessions.clear()
            task()

        self.tell(f"{worker.name} begins {doing}")
        self.scheduler.start(worker, doing, attached)

    def _replace(self) -> None:
        """The product's clocks, dice, sockets and disks, by ours."""
        process_clock.read = self.scheduler.clock
        catalog.ids.time = SimpleNamespace(time_ns=lambda: int(self.scheduler.now.timestamp() * 1e9))  # type: ignore[assignment]
        catalog.ids.secrets = SimpleNamespace(randbits=lambda bits: self.dice.getrandbits(bits))  # type: ignore[assignment]
        catalog.providers.flight._now_s = lambda: self.scheduler.now.timestamp()
        dispatch.heartbeat._beating = self._beating
        watchdog: Any = Watchdog(self.scheduler)
        catalog.providers.flight.watchdog = lambda: watchdog
        urllib3.util.connection.create_connection = self.network.connect
        urllib3.connection._ssl_wrap_socket_and_match_hostname = self._shaken_hands  # type: ignore[assignment]
        pinned: Any = dispatch.outputs.pinned
        pinned.time = SimpleNamespace(monotonic=lambda: self.scheduler.now.timestamp())
        pinned.socket = SimpleNamespace(
            create_connection=self.network.connect,
            SOCK_STREAM=socket.SOCK_STREAM,
            getaddrinfo=socket.getaddrinfo,
        )
        fetching: Any = dispatch.outputs.fetching
        fetching._tls_context = lambda _: SimpleNamespace(wrap_socket=self._secured)
        dispatch.outputs.rehosting.verify = _verified_once()
        dispatch.outputs.storage._sync = _not_to_the_disk
        self._poll_in_order()
        self._send_in_order()
        root = logging.getLogger()
        root.handlers = [self.log]
        root.setLevel(logging.INFO)

    @contextmanager
    def _beating(self, beat: Callable[[], object]) -> Iterator[None]:
        """It beats while time passes in a system call, and not while the whole process stands still."""
        worker = self.scheduler.current
        if worker is None:
            yield
            return
        worker.heart = beat
        try:
            yield
        finally:
            worker.heart = None

    def _send_in_order(self) -> None:
        """What one task sends goes one after the other, in its own thread."""
        departures: Any = dispatch.departures
        departures.pool_of_this_process = lambda: None

    def _poll_in_order(self) -> None:
        """Each task asks by itself: what another process has under way is not known to it."""
        polling: Any = dispatch.polling
        polling.ThreadPoolExecutor = _AtOnce
        module: Any = follow
        module.monotonic = lambda: self.scheduler.now.timestamp()
        module.polling_of_this_process = lambda: polling.Polling(
            settings.POLL_THREADS, settings.POLL_THREADS_PER_CHANNEL
        )

    def _secured(self, plain: Any, server_hostname: str) -> Any:
        return self.network.secured(plain)

    def _shaken_hands(self, sock: Any, **_: Any) -> Any:
        wire = self.network.secured(sock)
        return urllib3.connection._WrappedAndVerifiedSocket(socket=wire, is_verified=True)


class _AtOnce:
    """In place of a pool of threads: the same calls, one after the other, in the caller's thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._calls = 0

    def submit(self, function: Callable[..., Any], *args: Any) -> None:
        self._calls += 1
        function(*args)


def _verified_once() -> Callable[..., Any]:
    """Each content is really decoded in its subprocess once; the same bytes are as good the next time."""
    known: dict[tuple[bytes, str], Any] = {}

    def verified(path: Path, kind: str, limits: Any) -> Any:
        content = (path.read_bytes(), kind)
        if content not in known:
            known[content] = verify(path, kind, limits)
        return known[content]

    return verified


def _not_to_the_disk(path: Path) -> None:
    """No life outlives a power cut."""


def _install_catalogue() -> None:
    document = yaml.safe_load((Path(settings.BASE_DIR) / "catalog" / "demo" / "catalogue.yaml").read_text())
    document["channels"]["ark-beijing"] |= {"concurrency": 3}
    document["channels"]["ark-singapore"] |= {"concurrency": 2}
    document["channels"]["ark-singapore"]["base_url"] = {"env": "FRAMEYARD_SECURE_URL", "path": "/ark/api/v3"}
    for supply in document["supplies"].values():
        supply["concurrency"] = min(supply["concurrency"], 2)
    for policy in document["policies"].values():
        policy |= _POLICY
    environment = {
        "FRAMEYARD_SIMULATOR_URL": _PLAIN,
        "FRAMEYARD_SECURE_URL": _SECURE,
        "FRAMEYARD_DEMO_ARK_BEIJING_KEY": CANARIES["beijing"],
        "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": CANARIES["singapore"],
    }
    plan = plan_import(yaml.safe_dump(document, sort_keys=False), environment, process_clock.START)
    apply_import(plan, actor=OPERATOR, now=process_clock.START)


def _customers() -> tuple[dict[str, str], dict[str, int]]:
    """A customer with a key that is never revoked and one that may be; and a stranger."""
    secrets, rows = {}, {}
    for name in _KEYS_OF_TESTS:
        owner = "stranger" if name == "other" else "acme"
        customer = create_customer(owner, process_clock.START, group="studio", deposit_micros=1_000_000_000)
        row, key = issue_key(customer, name=name)
        secrets[name], rows[name] = key.secret, row.pk
    return secrets, rows


__all__ = ["CANARIES", "OPERATOR", "WORKERS", "Installation", "Log", "is_expected", "told"]
