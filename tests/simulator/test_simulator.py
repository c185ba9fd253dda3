"""What the simulator does over HTTP beyond what an adapter asks of it."""

import io
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import av
import pytest
import requests
from PIL import Image

from catalog.simulator import media
from catalog.simulator.scenario import Timing
from catalog.simulator.server import Simulator
from tests.factories import NOW
from tests.providers.conftest import Serve, read_request, reply

TASKS = "/contents/generations/tasks"
BODY: dict[str, Any] = {"model": "m", "content": [{"type": "text", "text": "A lighthouse"}]}


def call(
    simulator: Simulator, method: str, path: str, key: str = "key-1", **values: Any
) -> requests.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return requests.request(method, simulator.base_url("ark") + path, headers=headers, timeout=20, **values)


def create(simulator: Simulator, key: str = "key-1", **values: Any) -> str:
    answer = call(simulator, "POST", TASKS, key, json={**BODY, **values})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def look(simulator: Simulator, task_id: str, key: str = "key-1") -> dict[str, Any]:
    document: dict[str, Any] = call(simulator, "GET", f"{TASKS}/{task_id}", key).json()
    return document


def do(simulator: Simulator, **what: Any) -> None:
    simulator.script({"rules": [{"when": {"call": "submit"}, "do": what}]})


def output_of(simulator: Simulator, **what: Any) -> str:
    """The address of the output of a task whose script says `what`."""
    do(simulator, **what)
    task_id = create(simulator)
    simulator.world.advance(10)
    return str(look(simulator, task_id)["content"]["video_url"])


@pytest.mark.parametrize(("resolution", "ratio", "size"), [
    ("480p", "16:9", (854, 480)), ("720p", "16:9", (1280, 720)), ("1080p", "9:16", (1080, 1920)),
    ("720p", "1:1", (720, 720)), ("720p", "adaptive", (1280, 720)), ("1080p", "21:9", (2520, 1080)),
    ("720p", "4:3", (960, 720)), ("720p", "3:4", (720, 960)),
])  # fmt: skip
def test_a_video_has_the_size_that_was_asked_for(resolution: str, ratio: str, size: tuple[int, int]) -> None:
    assert media.size_of(resolution, ratio) == size


@pytest.mark.parametrize("audio", [False, True])
def test_a_video_plays_for_as_long_as_was_asked_for(audio: bool) -> None:
    with av.open(io.BytesIO(media.video(3, 320, 180, audio))) as video:
        assert video.duration == pytest.approx(3_000_000, abs=20_000)
        frames = [(frame.width, frame.height) for frame in video.decode(video=0)]
        assert frames == [(320, 180)] * 24
        assert len(video.streams.audio) == int(audio)


def test_a_long_video_is_small_and_quick_to_make() -> None:
    begun = time.process_time()
    made = media.video(5, 1280, 720)
    assert time.process_time() - begun < 1
    assert len(made) < 100_000
    assert media.video(5, 1280, 720) is made


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_a_picture_is_one(kind: str) -> None:
    with Image.open(io.BytesIO(media.picture(640, 480, kind))) as picture:
        picture.load()
        assert (picture.size, (picture.format or "").lower()) == ((640, 480), kind)


def test_an_output_is_signed_anew_each_time_and_expires(simulator: Simulator) -> None:
    first = output_of(simulator, output_lifetime_s=60)
    assert requests.get(first, timeout=20).status_code == 200
    simulator.world.advance(61)
    assert requests.get(first, timeout=20).status_code == 403
    task_id = first.rpartition("/")[2].partition(".")[0]
    again = look(simulator, task_id)["content"]["video_url"]
    assert again != first
    assert requests.get(again, timeout=20).status_code == 200


def test_an_output_that_is_not_there_yet_comes_later(simulator: Simulator) -> None:
    url = output_of(simulator, output_statuses=[504, 504])
    assert [requests.get(url, timeout=20).status_code for _ in range(3)] == [504, 504, 200]


@pytest.mark.parametrize(("output", "status"), [
    ("missing", 404), ("expired", 403), ("redirect", 302), ("needs_header", 401), ("empty", 200),
    ("wrong_type", 200), ("playlist", 200),
])  # fmt: skip
def test_an_output_is_withheld_or_spoilt_as_the_script_says(
    simulator: Simulator, output: str, status: int
) -> None:
    url = output_of(simulator, output=output)
    answer = requests.get(url, timeout=20, allow_redirects=False)
    assert answer.status_code == status
    assert b"ftyp" not in answer.content


def test_an_output_may_need_a_header(simulator: Simulator) -> None:
    url = output_of(simulator, output="needs_header")
    assert requests.get(url, headers={"Authorization": "Bearer key-1"}, timeout=20).status_code == 200


def test_an_output_may_break_off(simulator: Simulator) -> None:
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(output_of(simulator, output="truncated"), timeout=20)


@pytest.mark.parametrize("output", ["endless", "too_large"])
def test_an_output_may_be_larger_than_anybody_wants(simulator: Simulator, output: str) -> None:
    with requests.get(output_of(simulator, output=output), timeout=20, stream=True) as answer:
        assert ("Content-Length" in answer.headers) is (output == "too_large")
        read = sum(len(chunk) for chunk, _ in zip(answer.iter_content(1024 * 1024), range(20), strict=False))
        assert read == 20 * 1024 * 1024


def test_an_output_may_unpack_to_a_thousand_times_its_size(simulator: Simulator) -> None:
    with requests.get(output_of(simulator, output="gzip_bomb"), timeout=20, stream=True) as answer:
        assert int(answer.headers["Content-Length"]) < 100_000
        assert answer.headers["Content-Encoding"] == "gzip"


def test_any_key_is_an_account_and_sees_only_its_own(simulator: Simulator) -> None:
    task_id = create(simulator, "key-1")
    assert call(simulator, "GET", f"{TASKS}/{task_id}", "key-2").status_code == 404
    assert call(simulator, "GET", TASKS, "key-2").json() == {"total": 0, "items": []}
    assert call(simulator, "GET", TASKS, "").status_code == 401


def test_an_account_runs_as_many_as_it_may_and_queues_the_rest(simulator: Simulator) -> None:
    simulator.script({"accounts": {"key-1": {"concurrency": 2}}})
    ids = [create(simulator) for _ in range(5)]
    others = create(simulator, "key-2")

    def statuses() -> list[str]:
        return [look(simulator, task_id)["status"] for task_id in ids]

    simulator.world.advance(1)
    assert statuses() == ["running"] * 2 + ["queued"] * 3
    assert look(simulator, others, "key-2")["status"] == "running"
    simulator.world.advance(3)
    assert statuses() == ["succeeded"] * 2 + ["running"] * 2 + ["queued"]
    simulator.world.advance(3)
    assert statuses() == ["succeeded"] * 4 + ["running"]


def test_an_account_at_its_limit_is_refused(simulator: Simulator) -> None:
    simulator.script({"accounts": {"key-1": {"limit": 1}}})
    create(simulator)
    assert call(simulator, "POST", TASKS, json=BODY).status_code == 429
    simulator.world.advance(10)
    create(simulator)


def test_a_key_that_is_revoked_is_refused_everywhere(simulator: Simulator) -> None:
    task_id = create(simulator)
    simulator.script({"accounts": {"key-1": {"state": "revoked"}}})
    for method, path in (
        ("POST", TASKS),
        ("GET", TASKS),
        ("GET", f"{TASKS}/{task_id}"),
        ("DELETE", f"{TASKS}/{task_id}"),
    ):
        assert call(simulator, method, path, json=BODY).status_code == 401


def test_the_same_seed_gives_the_same_ids_and_the_same_times() -> None:
    def run(seed: int) -> list[Any]:
        with Simulator(seed=seed, timing=Timing(1, 3, 0.5), clock=NOW.timestamp) as simulator:
            ids = [create(simulator) for _ in range(3)]
            return [(task_id, simulator.world.task(task_id).life) for task_id in ids]  # type: ignore[union-attr]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_the_log_counts_what_was_accepted_and_shows_every_post_without_key_or_prompt(
    simulator: Simulator,
) -> None:
    create(simulator, safety_identifier="fy-1")
    create(simulator, safety_identifier="fy-1")
    do(simulator, error="ServerOverloaded")
    call(simulator, "POST", TASKS, json={**BODY, "safety_identifier": "fy-2"})
    call(simulator, "POST", TASKS, json={**BODY, "content": []})
    log = requests.get(simulator.url + "/_sim/log", timeout=20).json()
    assert log["accepted"] == {"fy-1": 2}
    assert [post["outcome"] for post in log["posts"]] == [
        "whole",
        "whole",
        "ServerOverloaded",
        "MissingParameter",
    ]
    assert [bool(post["task_id"]) for post in log["posts"]] == [True, True, False, False]
    assert "key-1" not in json.dumps(log)
    assert "lighthouse" not in json.dumps(log)


def test_a_reset_forgets_everything(simulator: Simulator) -> None:
    first = create(simulator)
    do(simulator, error="ServerOverloaded")
    assert requests.post(simulator.url + "/_sim/reset", timeout=20).status_code == 200
    assert call(simulator, "GET", TASKS).json()["total"] == 0
    assert create(simulator) == first


def test_the_door_for_scripts_takes_them_and_refuses_what_it_does_not_know(simulator: Simulator) -> None:
    door = simulator.url + "/_sim/script"
    rule = {"do": {"error": "ServerOverloaded", "retry_after": 7}, "times": 1}
    assert requests.post(door, json={"rules": [rule]}, timeout=20).status_code == 200
    refused = call(simulator, "POST", TASKS, json=BODY)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "7")
    create(simulator)
    for wrong in ('{"rules": [{"do": {"x": 1}}]}', "nonsense", "[]"):
        assert requests.post(door, data=wrong, timeout=20).status_code == 400


def test_time_passes_by_a_call(simulator: Simulator) -> None:
    task_id = create(simulator)
    requests.post(simulator.url + "/_sim/clock", json={"advance_s": 10}, timeout=20)
    assert look(simulator, task_id)["status"] == "succeeded"


def test_latency_is_kept(simulator: Simulator) -> None:
    do(simulator, latency_s=0.3)
    begun = time.monotonic()
    create(simulator)
    assert time.monotonic() - begun >= 0.3


def test_a_task_may_show_in_lists_only_later(simulator: Simulator) -> None:
    do(simulator, hidden_from_list_s=5)
    create(simulator)
    assert call(simulator, "GET", TASKS).json()["total"] == 0
    simulator.world.advance(5)
    assert call(simulator, "GET", TASKS).json()["total"] == 1


def test_tasks_are_forgotten_after_a_week(simulator: Simulator) -> None:
    task_id = create(simulator)
    simulator.world.advance(7 * 24 * 3600 + 1)
    assert call(simulator, "GET", f"{TASKS}/{task_id}").status_code == 404
    assert call(simulator, "GET", TASKS).json()["total"] == 0


def test_what_is_no_face_is_not_found(simulator: Simulator) -> None:
    assert requests.get(simulator.url + "/nobody/v1", timeout=20).status_code == 404
    assert call(simulator, "GET", "/chat/completions").status_code == 404


@pytest.fixture
def calls(serve: Serve) -> tuple[str, Callable[[int], list[dict[str, Any]]]]:
    """An address to call, and `calls(n)`: the bodies of the first n calls, each with its `target`."""
    received: list[bytes] = []

    def behaviour(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(reply(200, b"{}"))

    def awaited(number: int) -> list[dict[str, Any]]:
        until = time.monotonic() + 20
        while len(received) < number and time.monotonic() < until:
            time.sleep(0.01)
        parts = [request.partition(b"\r\n\r\n") for request in received]
        return [{**json.loads(body), "target": head.split(b" ")[1].decode()} for head, _, body in parts]

    return f"http://127.0.0.1:{serve(behaviour)}/called?key=fy-1&token=0123456789abcdef", awaited


def test_each_change_of_a_task_is_called_back(simulator: Simulator, calls: Any) -> None:
    address, awaited = calls
    task_id = create(simulator, callback_url=address)
    simulator.world.advance(10)
    bodies = awaited(3)
    assert [body["status"] for body in bodies] == ["queued", "running", "succeeded"]
    assert {body["id"] for body in bodies} == {task_id}
    assert bodies[-1]["content"]["video_url"].startswith(simulator.url)


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        ("twice", ["queued", "queued", "running", "running", "succeeded", "succeeded"]),
        ("reordered", ["succeeded", "running", "queued"]),
    ],
)
def test_calls_come_twice_or_in_another_order(
    simulator: Simulator, calls: Any, callback: str, words: list[str]
) -> None:
    address, awaited = calls
    do(simulator, callback=callback)
    create(simulator, callback_url=address)
    simulator.world.advance(10)
    assert [body["status"] for body in awaited(len(words))] == words


def test_a_call_comes_late_with_the_time_of_the_change(simulator: Simulator, calls: Any) -> None:
    address, awaited = calls
    do(simulator, callback="late")
    create(simulator, callback_url=address)
    simulator.world.advance(10)
    assert awaited(0) == []
    simulator.world.advance(400)
    assert [body["updated_at"] for body in awaited(3)] == [NOW.timestamp() + after_s for after_s in (0, 1, 4)]


def test_a_forged_call_carries_another_token(simulator: Simulator, calls: Any) -> None:
    address, awaited = calls
    do(simulator, callback="forged")
    create(simulator, callback_url=address)
    assert awaited(1)[0]["target"] == "/called?key=fy-1&token=0123456700000000"


def test_the_command_runs_a_simulator_until_it_is_stopped(tmp_path: Any) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"accounts": {"sk-old": {"state": "revoked"}}}))
    command = [sys.executable, "manage.py", "simulator", "--port", "0", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            name, _, base_url = process.stdout.readline().strip().partition(": ")
            assert name == "ark"
            for key, status in (("sk-new", 200), ("sk-old", 401)):
                headers = {"Authorization": f"Bearer {key}"}
                assert requests.get(base_url + TASKS, headers=headers, timeout=20).status_code == status
        finally:
            process.terminate()


def test_the_command_refuses_a_script_that_it_does_not_know(tmp_path: Any) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"rules": [{"do": {"answer": "vanish"}}]}')
    command = [sys.executable, "manage.py", "simulator", "--port", "0", "--script", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "'vanish' is none of" in ended.stderr
