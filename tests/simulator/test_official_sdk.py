"""The provider's own client, unmodified, against the simulator: that is how faithful it must be."""

import io
import warnings
from collections.abc import Iterator

import av
import pytest
import requests
from PIL import Image

from catalog.simulator.server import Simulator
from tests.factories import NOW

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from volcenginesdkarkruntime import Ark
    from volcenginesdkarkruntime._exceptions import (
        ArkAPIConnectionError,
        ArkAPIStatusError,
        ArkRateLimitError,
    )

MODEL = "doubao-seedance-2-0"
TEXT = [{"type": "text", "text": "A lighthouse in a storm"}]


@pytest.fixture
def ark(simulator: Simulator) -> Iterator[Ark]:
    with Ark(api_key="sk-somebody", base_url=simulator.base_url("ark")) as client:
        yield client


def test_a_video_is_created_polled_and_fetched(ark: Ark, simulator: Simulator) -> None:
    created = ark.content_generation.tasks.create(
        model=MODEL, content=TEXT, resolution="720p", ratio="9:16", duration=4, generate_audio=True
    )
    seen = []
    for seconds in (0, 2, 3):
        simulator.world.advance(seconds)
        seen.append(ark.content_generation.tasks.get(task_id=created.id))
    assert [task.status for task in seen] == ["queued", "running", "succeeded"]
    ended = seen[-1]
    assert (ended.id, ended.model, ended.duration, ended.ratio) == (created.id, MODEL, 4, "9:16")
    assert (ended.created_at, ended.updated_at) == (NOW.timestamp(), NOW.timestamp() + 4)
    assert ended.usage.completion_tokens == 720 * 1280 * 24 * 4 // 1024
    with av.open(io.BytesIO(requests.get(ended.content.video_url, timeout=60).content)) as video:
        stream = video.streams.video[0]
        assert (stream.width, stream.height) == (720, 1280)
        assert video.duration == pytest.approx(4_000_000, abs=50_000)
        assert len(video.streams.audio) == 1


def test_a_reference_comes_back_with_the_task(ark: Ark) -> None:
    created = ark.content_generation.tasks.create(model=MODEL, content=TEXT, safety_identifier="fy-1")
    assert ark.content_generation.tasks.get(task_id=created.id).safety_identifier == "fy-1"


def test_tasks_are_listed_newest_first_and_filtered(ark: Ark) -> None:
    ids = [ark.content_generation.tasks.create(model=f"model-{n % 2}", content=TEXT).id for n in range(5)]
    listed = ark.content_generation.tasks.list(page_num=1, page_size=3)
    assert (listed.total, [task.id for task in listed.items]) == (5, ids[:1:-1])
    assert [task.id for task in ark.content_generation.tasks.list(page_num=2, page_size=3).items] == ids[
        1::-1
    ]
    assert ark.content_generation.tasks.list(model="model-1").total == 2
    assert ark.content_generation.tasks.list(task_ids=ids[:2]).total == 2
    assert ark.content_generation.tasks.list(status="running").total == 0
    assert ark.content_generation.tasks.list(status="queued").total == 5


def test_a_queued_task_is_cancelled_and_a_running_one_is_not(ark: Ark, simulator: Simulator) -> None:
    queued, running = (ark.content_generation.tasks.create(model=MODEL, content=TEXT).id for _ in range(2))
    ark.content_generation.tasks.delete(task_id=queued)
    assert ark.content_generation.tasks.get(task_id=queued).status == "cancelled"
    simulator.world.advance(2)
    with pytest.raises(ArkAPIStatusError) as refused:
        ark.content_generation.tasks.delete(task_id=running)
    assert refused.value.status_code == 409


def test_deleting_an_ended_task_deletes_its_record(ark: Ark, simulator: Simulator) -> None:
    task_id = ark.content_generation.tasks.create(model=MODEL, content=TEXT).id
    simulator.world.advance(10)
    ark.content_generation.tasks.delete(task_id=task_id)
    with pytest.raises(ArkAPIStatusError) as missing:
        ark.content_generation.tasks.get(task_id=task_id)
    assert missing.value.status_code == 404


def test_an_image_comes_with_the_answer(ark: Ark) -> None:
    made = ark.images.generate(model="doubao-seedream-5-0", prompt="A lighthouse", size="1024x768")
    assert made.usage.generated_images == 1
    picture = Image.open(io.BytesIO(requests.get(made.data[0].url, timeout=60).content))
    assert picture.size == (1024, 768)


def test_errors_are_raised_as_the_client_knows_them(ark: Ark, simulator: Simulator) -> None:
    simulator.script({"rules": [{"do": {"error": "InputTextSensitiveContentDetected"}}]})
    with pytest.raises(ArkAPIStatusError) as refused:
        ark.content_generation.tasks.create(model=MODEL, content=TEXT)
    assert (refused.value.status_code, refused.value.code) == (400, "InputTextSensitiveContentDetected")


def test_what_the_client_repeats_by_itself_is_counted(ark: Ark, simulator: Simulator) -> None:
    """Three posts for one call, and three paid tasks where only the answer is lost: why we never use it."""
    simulator.script({"rules": [{"do": {"answer": "drop_after_acceptance"}}]})
    with pytest.raises(ArkAPIConnectionError):
        ark.content_generation.tasks.create(model=MODEL, content=TEXT, safety_identifier="fy-1")
    assert simulator.world.log()["accepted"] == {"fy-1": 3}
    simulator.script({"rules": [{"do": {"error": "ServerOverloaded"}}]})
    with pytest.raises(ArkRateLimitError):
        ark.content_generation.tasks.create(model=MODEL, content=TEXT, safety_identifier="fy-2")
    posts = [post["outcome"] for post in simulator.world.log()["posts"] if post["reference"] == "fy-2"]
    assert posts == ["ServerOverloaded"] * 3


def test_a_parameter_that_ark_does_not_take_is_refused(ark: Ark, simulator: Simulator) -> None:
    simulator.script({"accounts": {}})
    wrong = [
        {"content": []},
        {"content": TEXT, "resolution": "4k"},
        {"content": TEXT, "ratio": "2:1"},
        {"content": TEXT, "duration": 100},
        {
            "content": [
                {"type": "audio_url", "audio_url": {"url": "https://x/a.mp3"}, "role": "reference_audio"}
            ]
        },
    ]
    for parameters in wrong:
        with pytest.raises(ArkAPIStatusError) as refused:
            ark.content_generation.tasks.create(model=MODEL, **parameters)
        assert refused.value.status_code == 400
