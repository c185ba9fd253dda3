"""Log lines: one JSON object each, and never a reason to wait."""

import json
import logging
import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from config.logs import JsonFormatter, UnblockedHandler


class Pipe:
    """A sink whose reader may stop reading."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self.handler = UnblockedHandler(writing)
        self.handler.setFormatter(JsonFormatter())
        self.logger = logging.Logger("pipe")
        self.logger.addHandler(self.handler)
        self._writing = writing
        self._rest = b""

    def read(self) -> list[dict[str, object]]:
        while True:
            try:
                self._rest += os.read(self._reading, 1 << 16)
            except BlockingIOError:
                break
        whole, _, self._rest = self._rest.rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines() if line.endswith(b"}")]

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_a_line_carries_its_ids_and_nothing_else_that_was_attached(pipe: Pipe) -> None:
    pipe.logger.info("Delivered", extra={"job": "job_1", "prompt": "a secret garden"})
    [line] = pipe.read()
    assert (line["message"], line["job"]) == ("Delivered", "job_1")
    assert "prompt" not in line


def test_a_line_of_the_framework_names_the_request_that_it_is_about(pipe: Pipe) -> None:
    pipe.logger.error("Internal Server Error", extra={"request": SimpleNamespace(request_id="req_1")})
    [line] = pipe.read()
    assert line["request_id"] == "req_1"


def test_when_nobody_reads_lines_are_dropped_and_counted_and_nobody_waits(pipe: Pipe) -> None:
    for number in range(5_000):  # a pipe holds 64 KiB: these are 500
        pipe.logger.info("%s", f"line {number} ".ljust(100, "."))
    dropped = pipe.handler.dropped
    assert 0 < dropped < 5_000
    kept = pipe.read()
    assert len(kept) == 5_000 - dropped
    pipe.logger.info("back")
    told, last = pipe.read()
    assert (told["message"], told["count"]) == ("Lines were dropped: nobody read them", dropped)
    assert (last["message"], pipe.handler.dropped) == ("back", 0)


def test_a_line_longer_than_a_pipe_takes_at_once_arrives_whole(pipe: Pipe) -> None:
    pipe.logger.info("x" * 20_000)
    [line] = pipe.read()
    assert line["message"] == "x" * 20_000


def test_a_line_that_was_cut_spoils_no_other(pipe: Pipe) -> None:
    pipe.logger.info("x" * 100_000)  # more than the pipe holds
    assert pipe.handler.dropped == 1
    pipe.read()
    pipe.logger.info("whole")
    assert [line["message"] for line in pipe.read()] == ["Lines were dropped: nobody read them", "whole"]
