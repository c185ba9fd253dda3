"""How requests name uploaded files, and the links by which providers fetch them."""

import pytest

from dispatch.inputs.links import MAX_SPAN_S, LinkState, check_link, sign_link
from dispatch.inputs.references import references_in, stand_in, stand_ins_in, with_addresses, with_references

KEY, OTHER = b"k" * 50, b"o" * 50
NOW = 1_800_000_000
FILE = {"asset": "ast_1", "kind": "image", "size_bytes": 9, "sha256": "ab", "url": stand_in("ast_1")}


def parts(link: str) -> tuple[str, str]:
    pairs = dict(pair.split("=") for pair in link.partition("?")[2].split("&"))
    return pairs["expires"], pairs["signature"]


def test_a_link_works_until_it_ends_and_under_any_key_that_signed() -> None:
    link = sign_link(KEY, "ast_1", "png", NOW + 60)
    assert link.startswith("/api/v1/assets/ast_1/file.png?")
    assert check_link([OTHER, KEY], "ast_1", *parts(link), NOW) is LinkState.VALID
    assert check_link([KEY], "ast_1", *parts(link), NOW + 60) is LinkState.EXPIRED


@pytest.mark.parametrize(
    ("asset", "expires", "signature"),
    [
        ("ast_2", None, None),
        ("ast_1", str(NOW + 61), None),
        ("ast_1", f"0{NOW + 60}", None),
        ("ast_1", "", None),
        ("ast_1", "²", None),
        ("ast_1", None, ""),
        ("ast_1", None, "ä" * 64),
        ("ast_1", None, "0" * 64),
    ],
)
def test_a_link_that_was_changed_anywhere_is_forged(
    asset: str, expires: str | None, signature: str | None
) -> None:
    good = parts(sign_link(KEY, "ast_1", "png", NOW + 60))
    given = (good[0] if expires is None else expires, good[1] if signature is None else signature)
    assert check_link([KEY], asset, *given, NOW) is LinkState.FORGED


def test_a_link_signed_by_nobody_we_know_or_for_too_long_is_forged() -> None:
    assert (
        check_link([OTHER], "ast_1", *parts(sign_link(KEY, "ast_1", "png", NOW + 60)), NOW)
        is LinkState.FORGED
    )
    far = sign_link(KEY, "ast_1", "png", NOW + MAX_SPAN_S + 1)
    assert check_link([KEY], "ast_1", *parts(far), NOW) is LinkState.FORGED


def test_each_reference_has_its_field_and_the_kind_that_belongs_there() -> None:
    body = {
        "prompt": "x",
        "reference_images": [{"url": "https://a.example/1.png"}, FILE],
        "reference_audios": [{"asset": "ast_2"}],
        "last_frame": FILE,
    }
    found = [(field, kind) for field, kind, _ in references_in(body)]
    assert found == [
        ("reference_images[0]", "image"),
        ("reference_images[1]", "image"),
        ("reference_audios[0]", "audio"),
        ("last_frame", "image"),
    ]


def test_ids_are_replaced_where_they_are_known_and_addresses_stay() -> None:
    body = {"reference_images": [{"asset": "ast_1"}, {"url": "https://a.example/1.png"}], "seed": 7}
    assert with_references(body, {"ast_1": FILE}) == {
        "reference_images": [FILE, {"url": "https://a.example/1.png"}],
        "seed": 7,
    }


def test_stand_ins_are_found_and_replaced_at_any_depth_and_nothing_else_is_touched() -> None:
    body = {
        "image": [stand_in("ast_1"), "https://a.example/1.png"],
        "content": [{"type": "image_url", "image_url": {"url": stand_in("ast_2")}, "n": 3}],
        "prompt": f"draw {stand_in('ast_3')}",  # words of the customer that only look alike
    }
    assert stand_ins_in(body) == {"ast_1", "ast_2"}
    sent = with_addresses(body, {"ast_1": "https://ours.example/1", "ast_2": "data:image/png;base64,eA=="})
    assert sent == {
        "image": ["https://ours.example/1", "https://a.example/1.png"],
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}, "n": 3}],
        "prompt": body["prompt"],
    }
