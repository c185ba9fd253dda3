"""One JSON object a log line: a sentence, and the ids that link it to the rows."""

import json
import logging
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
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
