"""A mail server on loopback: as much SMTP as a mail to one recipient takes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer


@dataclass
class MailServer:
    """Keeps sender, recipient and content of what it took."""

    port: int = 0
    refuses: bool = False
    received: list[tuple[str, str, str]] = field(default_factory=list)


@contextmanager
def mail_server() -> Iterator[MailServer]:
    kept = MailServer()

    class Conversation(StreamRequestHandler):
        def handle(self) -> None:
            sender = recipient = ""
            self._say("220 ready")
            while line := self.rfile.readline().decode().strip():
                word = line.partition(" ")[0].upper()
                if word == "MAIL":
                    sender = _address(line)
                elif word == "RCPT":
                    recipient = _address(line)
                elif word == "DATA":
                    self._say("354 go on")
                    kept.received.append((sender, recipient, self._content()))
                elif word == "QUIT":
                    self._say("221 bye")
                    return
                self._say("550 not here" if word == "RCPT" and kept.refuses else "250 ok")

        def _content(self) -> str:
            lines = []
            while (line := self.rfile.readline().decode()) != ".\r\n":
                lines.append(line)
            return "".join(lines)

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with ThreadingTCPServer(("127.0.0.1", 0), Conversation) as server:
        kept.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


def _address(line: str) -> str:
    return line.partition("<")[2].partition(">")[0]
