"""One JSON object a log line: a sentence, and the ids that link it to the rows."""

import json
import logging
import os
import select
from datetime import UTC, datetime

LINK_FIELDS = (
    "request_id",
    "job",
    "attempt",
    "channel",
    "supply",
    "model",
    "provider_job",
    "alert",
    "cluster",
    "code",
    "count",
    "duration_ms",
)


class JsonFormatter(logging.Formatter):
    """Only the fields named above leave with the sentence, so that no prompt or secret can slip in."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in LINK_FIELDS if hasattr(record, name)}
        if request_id := getattr(getattr(record, "request", None), "request_id", ""):
            line["request_id"] = request_id  # as the framework tells of a request
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class UnblockedHandler(logging.Handler):
    """Writes to a file descriptor, and never waits for whoever reads it: a line that can't go out is dropped.

    Who reads again is told how many were. No thread and no queue of its own, so that workers may fork."""

    def __init__(self, fd: int = 2) -> None:
        super().__init__()
        self._fd = fd
        self._is_cut = False  # the last line went out in part only
        self.dropped = 0  # since the last line that went out

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
            if self.dropped and self._write(self._about_the_dropped()):
                self.dropped = 0
            if self.dropped or not self._write(line):
                self.dropped += 1
        except Exception:  # noqa: BLE001 - logging's own rule: a line that can't be written breaks no work
            self.handleError(record)

    def _about_the_dropped(self) -> str:
        record = logging.LogRecord(
            __name__, logging.WARNING, "", 0, "Lines were dropped: nobody read them", (), None
        )
        record.count = self.dropped
        return self.format(record)

    def _write(self, line: str) -> bool:
        """A pipe that is ready takes so many bytes at once without waiting; a longer line goes in pieces."""
        text = f"\n{line}\n" if self._is_cut else f"{line}\n"
        whole = left = memoryview(text.encode(errors="backslashreplace"))
        while left:
            if not _is_ready(self._fd):
                self._is_cut = self._is_cut or len(left) < len(whole)
                return False
            left = left[os.write(self._fd, left[: select.PIPE_BUF]) :]
        self._is_cut = False
        return True


def _is_ready(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return any(event & select.POLLOUT for _, event in poll.poll(0))
