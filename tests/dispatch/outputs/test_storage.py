"""The store: names that follow from the work, first writer wins, nothing half written."""

import hashlib
import os
from pathlib import Path

import pytest

from catalog.ids import public_id
from dispatch.outputs.storage import MediaStore, Stored, output_name


@pytest.fixture
def store(tmp_path: Path) -> MediaStore:
    return MediaStore(tmp_path / "media")


def part(store: MediaStore, content: bytes, name: str = "fetch-1.part") -> Path:
    path = store.incoming() / name
    path.write_bytes(content)
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_placed_part_is_found_under_its_name_and_the_part_is_gone(store: MediaStore) -> None:
    source = part(store, b"content")
    placed = store.place(source, output_name("att_01abc", 1), sha256(b"content"))
    assert placed == Stored("outputs/bc/att_01abc-1", 7, sha256(b"content"))
    assert store.find(placed.name) == placed
    assert store.path(placed.name).read_bytes() == b"content"
    assert not source.exists()


def test_a_second_placing_changes_nothing_and_describes_what_was_there_first(store: MediaStore) -> None:
    name = output_name("att_01abc", 1)
    first = store.place(part(store, b"first"), name, sha256(b"first"))
    again = store.place(part(store, b"another"), name, sha256(b"another"))
    assert again == first
    assert store.path(name).read_bytes() == b"first"
    assert list(store.incoming().iterdir()) == []


def test_every_attempt_and_number_has_a_name_of_its_own_and_always_the_same() -> None:
    attempts = [public_id("att") for _ in range(50)]
    names = {output_name(attempt, number) for attempt in attempts for number in (1, 2)}
    assert len(names) == 100
    assert output_name(attempts[0], 1) == output_name(attempts[0], 1)


def test_names_of_one_moment_spread_over_directories() -> None:
    assert len({output_name(public_id("att"), 1).split("/")[1] for _ in range(200)}) > 50


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "../x", "outputs/../../x", "outputs//x", "outputs/x.mp4", "outputs/X", "a\0b", "é"],
)
def test_a_name_that_is_none_of_ours_reaches_no_file(name: str, store: MediaStore) -> None:
    with pytest.raises(ValueError, match="no name of a stored object"):
        store.path(name)


def test_nothing_is_found_where_nothing_was_placed(store: MediaStore) -> None:
    assert store.find(output_name("att_01abc", 1)) is None


def test_removing_is_repeatable(store: MediaStore) -> None:
    placed = store.place(part(store, b"content"), output_name("att_01abc", 1), sha256(b"content"))
    store.remove(placed.name)
    store.remove(placed.name)
    assert store.find(placed.name) is None


def test_parts_of_dead_workers_are_swept_and_living_ones_are_not(store: MediaStore) -> None:
    dead, alive = part(store, b"1", "fetch-dead.part"), part(store, b"2", "fetch-alive.part")
    os.utime(dead, (1000, 1000))
    os.utime(alive, (5000, 5000))
    assert store.sweep_incoming(older_than=3000) == 1
    assert list(store.incoming().iterdir()) == [alive]


def test_a_part_that_its_writer_placed_while_the_sweep_looks_is_no_error(store: MediaStore) -> None:
    # A link to nowhere: listed, and `stat` says of it what it says of a part that is gone.
    listed_but_gone = store.incoming() / "fetch-placed.part"
    listed_but_gone.symlink_to(store.incoming() / "nowhere")
    os.utime(part(store, b"1", "fetch-dead.part"), (1000, 1000))
    assert store.sweep_incoming(older_than=3000) == 1
    assert list(store.incoming().iterdir()) == [listed_but_gone]


def test_a_part_that_is_gone_is_an_error_and_not_an_empty_object(store: MediaStore) -> None:
    with pytest.raises(FileNotFoundError):
        store.place(store.incoming() / "fetch-gone.part", output_name("att_01abc", 1), sha256(b""))
    assert store.find(output_name("att_01abc", 1)) is None


def test_content_reaches_the_disk_before_its_name_does(
    store: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = part(store, b"content")
    target = store.path(output_name("att_01abc", 1))
    order: list[str] = []
    really_sync, really_link = os.fsync, os.link

    def sync(descriptor: int) -> None:
        order.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        really_sync(descriptor)

    def link(part: Path, name: Path) -> None:
        order.append("link")
        really_link(part, name)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    store.place(source, output_name("att_01abc", 1), sha256(b"content"))
    assert order == [f"sync {source.name}", "link", f"sync {target.parent.name}"]
