import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import catalog
from catalog.capability import contradictions, lacking, parse_capability
from catalog.degradation import DROPPABLE, parse_rule, reduced, rule_document, transformed
from catalog.document import DocumentError
from catalog.shape import ImageShape, VideoShape, shape_of
from tests.rules.scenarios import IMAGE_CAPABILITY, RULE, VIDEO_CAPABILITY

SCHEMAS = Path(catalog.__file__).parent / "schemas"
FIT = VideoShape("text_to_video", duration_s=5, resolution="720p", aspect_ratio="16:9")


def video(**changes: Any) -> dict[str, Any]:
    return dict(VIDEO_CAPABILITY) | changes


def lacks(shape: VideoShape | ImageShape, document: dict[str, Any]) -> list[str]:
    modality = "video" if isinstance(shape, VideoShape) else "image"
    return lacking(parse_capability(modality, document), shape)


def test_a_request_inside_every_limit_lacks_nothing() -> None:
    assert lacks(FIT, video()) == []
    assert lacks(ImageShape("text_to_image", size="1024x1024", n=4, images=3), dict(IMAGE_CAPABILITY)) == []


def test_what_was_not_asked_for_is_not_missed() -> None:
    assert lacks(VideoShape("text_to_video"), video(durations_s=[], resolutions=[], aspect_ratios=[])) == []


@pytest.mark.parametrize(
    ("asked", "missed"),
    [
        ({"mode": "extend"}, "mode extend (can image_to_video, text_to_video)"),
        ({"duration_s": 16}, "duration_s 16 (can 4 to 15)"),
        ({"resolution": "4k"}, "resolution 4k (can 1080p, 720p)"),
        ({"aspect_ratio": "1:1"}, "aspect_ratio 1:1 (can 16:9, 9:16)"),
        ({"images": 10}, "images 10 (at most 9)"),
        ({"videos": 4}, "videos 4 (at most 3)"),
        ({"audios": 4}, "audios 4 (at most 3)"),
        ({"audio": True}, "audio"),
        ({"fps": 60}, "fps 60 (can 24, 30)"),
        ({"sample_count": 3}, "sample_count 3 (at most 2)"),
        ({"last_frame": True}, "last_frame"),
        ({"negative_prompt": True}, "negative_prompt"),
    ],
)
def test_each_missing_capability_is_named(asked: dict[str, Any], missed: str) -> None:
    can = video(
        audio=False,
        fps=[24, 30],
        max_samples=2,
        inputs={"last_frame": False},
        controls={"negative_prompt": False},
    )
    shape: dict[str, Any] = {
        "mode": "text_to_video",
        "duration_s": 5,
        "resolution": "720p",
        "aspect_ratio": "16:9",
    } | asked
    assert lacks(VideoShape(**shape), can) == [missed]


def test_all_that_is_missing_is_named_at_once() -> None:
    assert len(lacks(VideoShape("extend", duration_s=99, images=99), video())) == 3


def test_a_constraint_binds_only_where_every_when_equals_the_request() -> None:
    can = video(constraints=[{"when": {"resolution": "1080p"}, "require": {"duration_s": [8]}}])
    assert lacks(FIT, can) == []
    asked = VideoShape("text_to_video", duration_s=5, resolution="1080p")
    assert lacks(asked, can) == ["duration_s 5 (can 8 with resolution 1080p)"]


def test_a_constraint_may_require_a_span_or_a_switch() -> None:
    can = video(constraints=[{"when": {"audio": True}, "require": {"duration_s": {"max": 6}, "images": [0]}}])
    assert lacks(VideoShape("text_to_video", duration_s=6, audio=True), can) == []
    assert len(lacks(VideoShape("text_to_video", duration_s=7, audio=True, images=1), can)) == 2


def test_a_video_document_can_not_be_matched_with_an_image_request() -> None:
    with pytest.raises(TypeError):
        lacking(parse_capability("video", video()), ImageShape("text_to_image"))


def test_constraints_that_no_request_could_meet_are_found() -> None:
    can = video(constraints=[{"when": {"resolution": "1080p"}, "require": {"duration_s": [20]}}])
    assert contradictions(parse_capability("video", can)) == [
        "duration_s: requires 20, but the supply has only 4 to 15"
    ]
    assert contradictions(parse_capability("video", video())) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"modes": None}, "modes"),
        ({"modes": "text_to_video"}, "modes"),
        ({"modes": [1]}, "modes[0]"),
        ({"durations_s": {}}, "durations_s"),
        ({"durations_s": {"min": 9, "max": 4}}, "durations_s"),
        ({"durations_s": ["5"]}, "durations_s[0]"),
        ({"max_images": -1}, "max_images"),
        ({"audio": 1}, "audio"),
        ({"sizes": []}, "sizes"),
        ({"constraints": [{"when": {"size": "x"}}]}, "constraints[0].when.size"),
        ({"constraints": [{"require": {"seed": [1]}}]}, "constraints[0].require.seed[0]"),
        ({"constraints": [{"unless": {}}]}, "constraints[0].unless"),
    ],
)
def test_a_wrong_document_is_refused_by_the_path_of_what_is_wrong(change: dict[str, Any], path: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_capability("video", video(**change))
    assert refused.value.path == path


def test_nothing_of_an_image_speaks_of_real_persons() -> None:
    schema = (SCHEMAS / "image-capability.schema.json").read_text()
    assert "person" not in schema
    assert "portrait" not in schema
    assert not any("person" in name for name in ImageShape.__slots__)
    with pytest.raises(DocumentError):
        parse_capability("image", dict(IMAGE_CAPABILITY) | {"compliance": {"portrait": "denied"}})


@pytest.mark.parametrize(("modality", "document"), [("video", VIDEO_CAPABILITY), ("image", IMAGE_CAPABILITY)])
def test_the_published_schema_takes_what_the_reader_takes(modality: str, document: dict[str, Any]) -> None:
    schema = json.loads((SCHEMAS / f"{modality}-capability.schema.json").read_text())
    whole = dict(document) | {
        "compliance": {"regions": ["eu"], "guarantees": ["no_training"]},
        "quotas": {"rpm": 5},
    }
    jsonschema.validate(whole, schema)
    compliance = parse_capability(modality, whole).compliance
    assert (compliance.regions, compliance.guarantees) == ({"eu"}, {"no_training"})


@pytest.mark.parametrize("modality", ["video", "image"])
@pytest.mark.parametrize(
    "change", [{"unknown": 1}, {"max_images": -1}, {"constraints": [{"if": {}}]}, {"modes": None}]
)
def test_the_published_schema_refuses_what_the_reader_refuses(modality: str, change: dict[str, Any]) -> None:
    schema = json.loads((SCHEMAS / f"{modality}-capability.schema.json").read_text())
    document = dict(VIDEO_CAPABILITY if modality == "video" else IMAGE_CAPABILITY) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    with pytest.raises(DocumentError):
        parse_capability(modality, document)


def test_nine_images_two_videos_and_a_sound_become_nine_images_in_their_order() -> None:
    pictures = [f"ast_{number}" for number in range(9)]
    request = {
        "mode": "text_to_video",
        "prompt": "a fox",
        "reference_images": pictures,
        "reference_videos": ["v1", "v2"],
        "reference_audios": ["a1"],
    }
    rule = parse_rule(RULE)
    sent = transformed(request, rule)
    assert sent == request | {"reference_videos": [], "reference_audios": []}
    assert sent["reference_images"] == pictures
    assert reduced(shape_of("video", request), rule) == shape_of("video", sent)


def test_a_rule_can_drop_images_of_either_modality() -> None:
    rule = parse_rule(dict(RULE) | {"drop_inputs": ["reference_images"]})
    assert reduced(ImageShape("image_edit", images=3), rule) == ImageShape("image_edit")
    assert reduced(VideoShape("text_to_video", images=3, videos=1), rule) == VideoShape(
        "text_to_video", videos=1
    )


@pytest.mark.parametrize("name", ["prompt", "audio", "images", "", None, 5])
def test_a_rule_can_drop_nothing_but_reference_lists(name: Any) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_rule(dict(RULE) | {"drop_inputs": [name]})
    assert refused.value.path == "rule.drop_inputs[0]"


def test_a_rule_is_usable_only_when_it_is_verified_and_published() -> None:
    usable = {
        (verified, published): parse_rule(dict(RULE) | {"verified": verified, "published": published}).usable
        for verified in (True, False)
        for published in (True, False)
    }
    assert [key for key, value in usable.items() if value] == [(True, True)]


def test_a_rule_is_read_back_from_its_own_document() -> None:
    rule = parse_rule(RULE)
    assert parse_rule(rule_document(rule)) == rule
    assert set(rule.drop_inputs) <= set(DROPPABLE)
