"""Where outputs are fetched from: temporary, signed addresses on the simulator itself."""

import gzip
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs, urlencode

from catalog.simulator.faces.face import Face
from catalog.simulator.wire import Answer
from catalog.simulator.world import Task, World

PREFIX: Final = "/outputs/"
_PLAYLIST = b"#EXTM3U\n#EXTINF:5,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
_BOMB_BYTES = 64 * 1024 * 1024


def output_address(task: Task, origin: str, now: float, extension: str) -> str:
    """A new one each time; it is good for as long as the task's script says."""
    task.locators += 1
    query = urlencode(
        {"expires": int(now + task.do.output_lifetime_s), "signature": f"{task.id}-{task.locators}"}
    )
    return f"{origin}{PREFIX}{task.id}.{extension}?{query}"


def output_answer(
    name: str, query: str, headers: dict[str, str], world: World, faces: dict[str, Face]
) -> Answer:
    task = world.task(name.rpartition(".")[0])
    if task is None:
        return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {"Content-Type": "application/xml"})
    asked_before = world.count_output(task)
    if asked_before < len(task.do.output_statuses):
        return Answer(task.do.output_statuses[asked_before], b"not now", {"Content-Type": "text/plain"})
    expires = parse_qs(query).get("expires", ["0"])[0]
    if task.do.output == "expired" or not expires.isdecimal() or int(expires) < world.now():
        return Answer(403, b"<Error><Code>AccessDenied</Code></Error>", {"Content-Type": "application/xml"})
    return _spoilt(task, headers, faces[task.face].output(task))


def _spoilt(task: Task, headers: dict[str, str], made: tuple[str, bytes]) -> Answer:
    content_type, body = made
    whole = Answer(200, body, {"Content-Type": content_type})
    match task.do.output:
        case "missing":
            return Answer(404, b"<Error><Code>NoSuchKey</Code></Error>", {"Content-Type": "application/xml"})
        case "wrong_type":
            return Answer(200, b"<html>Sign in to see this video</html>", whole.headers)
        case "playlist":
            return Answer(200, _PLAYLIST, whole.headers)
        case "gzip_bomb":
            return Answer(
                200, gzip.compress(bytes(_BOMB_BYTES)), {**whole.headers, "Content-Encoding": "gzip"}
            )
        case "redirect":
            return Answer(302, b"", {"Location": task.do.location})
        case "needs_header":
            return whole if headers.get("authorization") else Answer(401, b"who asks?")
        case "truncated" | "empty" | "slow" | "too_large" | "endless":
            return replace(whole, delivery=task.do.output)
        case _:
            return whole
