"""The simulator's HTTP server: faces by path, outputs, callbacks, and a door for scripts.

`with Simulator() as simulator:` runs it on a free port of this machine; `manage.py simulator` for good."""

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from catalog.simulator.caller import Caller
from catalog.simulator.faces.face import Face, Request, json_answer
from catalog.simulator.faces.volcengine_ark import ArkFace
from catalog.simulator.outputs import PREFIX, output_answer
from catalog.simulator.scenario import ScriptError, Timing, read_script
from catalog.simulator.wire import Answer, send
from catalog.simulator.world import World

FACES: Final[Mapping[str, Face]] = {ArkFace.name: ArkFace()}
_MOST_BODY_BYTES = 16 * 1024 * 1024


class Simulator:
    """`seed` decides ids, jitter and chances; `clock` gives seconds since the epoch."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        seed: int = 1,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.world = World(seed, timing or Timing(), clock)
        self._server = _Server((host, port), self.world)
        self._caller = Caller(self.world, dict(FACES), self.url)
        self._threads = [
            threading.Thread(target=self._server.serve_forever, args=(0.05,), name="simulator", daemon=True),
            threading.Thread(target=self._caller.run, name="simulator-callbacks", daemon=True),
        ]

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def base_url(self, face: str = "ark") -> str:
        """What a channel at this provider has as its base address."""
        return self.url + FACES[face].prefix

    def script(self, document: Mapping[str, Any]) -> None:
        """Raises ScriptError. See `scenario` for what a script may say."""
        self.world.add_script(read_script(document))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._caller.stop()
        self._server.is_open = False
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a connection that somebody keeps open is no reason to wait
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], world: World) -> None:
        self.world = world
        self.is_open = True
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients of a simulator hang up in the middle of things; anything else is a defect and is shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = 120
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            super().handle_one_request()
            return
        self.close_connection = True

    def answer(self) -> None:
        length = self.headers.get("content-length") or "0"
        if not length.isdecimal() or int(length) > _MOST_BODY_BYTES or "transfer-encoding" in self.headers:
            self._send(Answer(413))
            self.close_connection = True
            return
        self._send(self._answer_to(self.rfile.read(int(length))))

    do_GET = do_POST = do_DELETE = answer

    def _answer_to(self, body: bytes) -> Answer:
        parts = urlsplit(self.path)
        headers = {name.casefold(): value for name, value in self.headers.items()}
        if parts.path.startswith("/_sim/"):
            return _administered(self.command, parts.path.removeprefix("/_sim/"), body, self.server.world)
        if parts.path.startswith(PREFIX):
            name = parts.path.removeprefix(PREFIX)
            return output_answer(name, parts.query, headers, self.server.world, dict(FACES))
        for face in FACES.values():
            if parts.path.startswith(face.prefix + "/"):
                path = parts.path.removeprefix(face.prefix)
                origin = f"http://{headers.get('host', '')}"
                return face.answer(
                    Request(self.command, path, parts.query, headers, body, origin), self.server.world
                )
        return Answer(404, b"no such face", {"Content-Type": "text/plain"})

    def _send(self, answer: Answer) -> None:
        if not send(self.connection, answer, lambda: self.server.is_open):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """The log is kept by the world, without keys and prompts."""


def _administered(method: str, path: str, body: bytes, world: World) -> Answer:
    match method, path:
        case "GET", "":
            return json_answer(200, {"faces": {name: face.prefix for name, face in FACES.items()}})
        case "GET", "log":
            return json_answer(200, world.log())
        case "POST", "reset":
            world.reset()
        case "POST", "script":
            return _scripted(body, world)
        case "POST", "clock":
            world.advance(float(json.loads(body)["advance_s"]))
        case _:
            return json_answer(404, {"detail": "known are GET log, POST script, POST clock, POST reset"})
    return json_answer(200, {})


def _scripted(body: bytes, world: World) -> Answer:
    try:
        world.add_script(read_script(json.loads(body)))
    except (ScriptError, ValueError, TypeError) as error:
        return json_answer(400, {"detail": str(error)})
    return json_answer(200, {})
