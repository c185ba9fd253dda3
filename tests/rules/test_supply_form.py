"""A supply as people type it: lengths, lists and numbers are read, and each fault has its code."""

from typing import Any

import pytest
from django.utils import translation

from dispatch import supply_form
from dispatch.supply_form import FIELDS, STEPS, Known, read_can, read_slots, read_what
from dispatch.views import supply_words

CAN = {
    "label": "v1",
    "modes": "text_to_video",
    "durations_s": "5",
    "resolutions": "720p",
    "aspect_ratios": "16:9",
    "max_images": "0",
    "max_videos": "0",
    "max_audios": "0",
    "real_person_policy": "denied",
}


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("5", [5]),
        ("5, 10,15", [5, 10, 15]),
        ("2.5 5", [2.5, 5]),
        ("4-15", {"min": 4, "max": 15}),
        ("4 – 12.5", {"min": 4, "max": 12.5}),
    ],
)
def test_lengths_are_read_as_they_are_written(typed: str, read: Any) -> None:
    assert read_can({**CAN, "durations_s": typed}, "video").values["document"]["durations_s"] == read


@pytest.mark.parametrize("typed", ["", "15-4", "five", "nan", "inf", "1e999", "-5", "0", "0-4", ",", "4--5"])
def test_what_is_no_length_is_a_fault_and_never_an_error(typed: str) -> None:
    assert read_can({**CAN, "durations_s": typed}, "video").faults


@pytest.mark.parametrize("typed", ["", "0", "-1", "1.5", "1e3", "٣", "1000001", "99999999999"])
def test_slots_are_a_whole_number_from_one_on(typed: str) -> None:
    assert read_slots({"concurrency": typed}).faults == {"concurrency": "no_limit"}
    assert read_slots({"concurrency": "1", "unknown_limit": "0"}).values["unknown_limit"] == 0


def test_a_name_is_a_slug_that_nobody_has() -> None:
    known = Known({"main"}, {"taken"})
    what = {"channel": "main", "modality": "image", "lifecycle": "stable"}
    what |= {"provider_model": "m", "model_family": "f"}
    for slug, fault in (
        ("a b", "bad_slug"),
        ("x" * 81, "bad_slug"),
        ("new", "bad_slug"),
        ("taken", "slug_taken"),
    ):
        assert read_what({**what, "slug": slug}, known).faults == {"slug": fault}
    assert read_what({**what, "slug": "fine-1"}, known).faults == {}


def test_only_the_fields_of_its_step_are_kept_and_bounded() -> None:
    form = {"slug": "x" * 1000, "confirm": "secret", "bracket-0-min": "5", "bracket-0-evil": "5"}
    what = supply_form.kept("what", form, lambda _name: [])
    assert set(what) == set(FIELDS["what"])
    assert len(what["slug"]) == 400
    cost = supply_form.kept("cost", form, lambda _name: [])
    assert "bracket-0-min" in cost
    assert "confirm" not in cost
    can = supply_form.kept("can", form, lambda name: ["text_to_video", "extend"] if name == "modes" else [])
    assert can["modes"] == "text_to_video, extend"


def test_i2_every_step_field_and_code_has_its_words_in_both_languages() -> None:
    assert set(STEPS) <= set(supply_words.SUPPLY_STEPS)
    assert {name for step in STEPS[:3] for name in FIELDS[step]} <= set(supply_words.SUPPLY_FIELDS)
    assert set(supply_form.MODES["video"] + supply_form.MODES["image"]) <= set(supply_words.MODES)
    with translation.override("zh-hans"):
        families = [words for name, words in vars(supply_words).items() if name.isupper()]
        assert not [text for words in families for text in words.values() if str(text).isascii()]
