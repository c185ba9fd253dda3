"""Which requests are the same content to refusal memory, and which are not."""

from typing import Any

import pytest

from dispatch.fingerprint import content_fingerprint, fingerprint_key

KEY = fingerprint_key("only-for-tests")
PICTURE = "https://media.example/cup.png"
REQUEST: dict[str, Any] = {
    "modality": "video",
    "mode": "text_to_video",
    "prompt": "a lighthouse in a storm",
    "negative_prompt": "people",
    "duration_s": 5,
    "reference_images": [{"url": PICTURE}],
}


def fingerprint(key: bytes = KEY, **changes: Any) -> str:
    return content_fingerprint({**REQUEST, **changes}, key)


@pytest.mark.parametrize(
    "changes",
    [
        {"duration_s": 10, "resolution": "1080p", "seed": 7, "sample_count": 2, "audio": True},
        {"real_person": True, "degradation": "strict", "routing_mode": "strict_model"},
        {"prompt": "  a lighthouse\n in a  storm "},
        {"reference_images": [{"url": f"{PICTURE}?X-Amz-Signature=ab12&X-Amz-Expires=900"}]},
        {"reference_images": [{"url": "https://MEDIA.example/cup.png?sv=2026&sig=a%2Bb&se=2026-12-01"}]},
        {"reference_images": [{"url": f"{PICTURE}#front"}]},
        {"reference_videos": [], "first_frame": None},
    ],
)
def test_what_does_not_touch_the_content_changes_nothing(changes: dict[str, Any]) -> None:
    assert fingerprint(**changes) == fingerprint()


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "a lighthouse in a calm"},
        {"negative_prompt": ""},
        {"prompt": "people", "negative_prompt": "a lighthouse in a storm"},
        {"reference_images": []},
        {"reference_images": [{"url": "https://media.example/Cup.png"}]},
        {"reference_images": [{"url": "https://elsewhere.example/cup.png"}]},
        {"reference_images": [{"url": f"{PICTURE}?file=2"}]},
        {"reference_images": [{"url": PICTURE}, {"url": PICTURE}]},
        {"reference_images": [], "first_frame": {"url": PICTURE}},
        {"reference_images": [], "reference_videos": [{"url": PICTURE}]},
    ],
)
def test_every_change_of_prompts_or_assets_makes_another_content(changes: dict[str, Any]) -> None:
    assert fingerprint(**changes) != fingerprint()


def test_one_letter_in_two_encodings_is_one_prompt() -> None:
    assert fingerprint(prompt="caf\u00e9") == fingerprint(prompt="cafe\u0301")


def test_assets_keep_their_order_to_which_prompts_refer() -> None:
    one, other = {"url": f"{PICTURE}?file=1"}, {"url": f"{PICTURE}?file=2"}
    assert fingerprint(reference_images=[one, other]) != fingerprint(reference_images=[other, one])


def test_a_known_checksum_goes_before_the_address() -> None:
    here, there = ({"url": f"https://{host}.example/x.png", "sha256": "ab" * 32} for host in ("one", "other"))
    assert fingerprint(first_frame=here) == fingerprint(first_frame=there)
    assert fingerprint(first_frame=here) != fingerprint(first_frame={"url": here["url"]})


def test_an_address_that_cannot_be_read_stands_for_itself() -> None:
    assert fingerprint(first_frame={"url": "https://[x"}) != fingerprint(first_frame={"url": "https://[y"})


def test_without_the_installation_s_secret_nobody_can_make_one() -> None:
    assert fingerprint(fingerprint_key("another")) != fingerprint()
    assert len(fingerprint()) == 64
    assert "lighthouse" not in fingerprint()
