"""What a face is: a provider's paths and documents over one world."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs

from catalog.simulator.wire import Answer
from catalog.simulator.world import Task, World


@dataclass(frozen=True, slots=True)
class Request:
    """One call, read whole. `path` is what follows the face's prefix; `origin` our own address, as called."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    origin: str = ""

    def parameters(self) -> dict[str, list[str]]:
        return parse_qs(self.query)


class Face(Protocol):
    @property
    def prefix(self) -> str: ...

    def answer(self, request: Request, world: World) -> Answer: ...

    def callback(self, task: Task, word: str, at: float, origin: str) -> bytes:
        """What is posted to the task's callback address when its status becomes `word`."""
        ...

    def output(self, task: Task) -> tuple[str, bytes]:
        """Content type and bytes of what the task made."""
        ...


def json_answer(
    status: int, document: Any, delivery: str = "whole", headers: Mapping[str, str] | None = None
) -> Answer:
    body = json.dumps(document, ensure_ascii=False).encode()
    return Answer(status, body, {"Content-Type": "application/json", **(headers or {})}, delivery)
