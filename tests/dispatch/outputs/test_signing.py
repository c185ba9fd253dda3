"""Links that work without a key: for one output, until a moment, and not a bit more."""

from urllib.parse import parse_qs, urlsplit

import pytest

from dispatch.outputs.signing import MAX_SPAN_S, LinkState, check_link, sign_link

KEY, OTHER = b"k" * 32, b"o" * 32
NOW = 1_800_000_000
JOB = "job_01abc"


def parameters(link: str) -> tuple[str, str]:
    query = parse_qs(urlsplit(link).query)
    return query["expires"][0], query["signature"][0]


def test_a_link_leads_to_its_output_and_is_valid_until_it_expires() -> None:
    link = sign_link(KEY, JOB, 2, NOW + 60)
    assert urlsplit(link).path == f"/api/v1/jobs/{JOB}/output/2/"
    expires, signature = parameters(link)
    assert check_link([KEY], JOB, 2, expires, signature, NOW) is LinkState.VALID
    assert check_link([KEY], JOB, 2, expires, signature, NOW + 59) is LinkState.VALID
    assert check_link([KEY], JOB, 2, expires, signature, NOW + 60) is LinkState.EXPIRED


def test_a_link_opens_no_other_output_and_no_later_time() -> None:
    expires, signature = parameters(sign_link(KEY, JOB, 1, NOW + 60))
    assert check_link([KEY], JOB, 2, expires, signature, NOW) is LinkState.FORGED
    assert check_link([KEY], "job_01abd", 1, expires, signature, NOW) is LinkState.FORGED
    assert check_link([KEY], JOB, 1, str(NOW + 61), signature, NOW) is LinkState.FORGED


def test_a_forged_link_is_forged_also_after_its_time() -> None:
    assert check_link([KEY], JOB, 1, str(NOW - 1), "0" * 64, NOW) is LinkState.FORGED


def test_after_a_change_of_keys_old_links_work_as_long_as_the_old_key_is_listed() -> None:
    expires, signature = parameters(sign_link(OTHER, JOB, 1, NOW + 60))
    assert check_link([KEY, OTHER], JOB, 1, expires, signature, NOW) is LinkState.VALID
    assert check_link([KEY], JOB, 1, expires, signature, NOW) is LinkState.FORGED
    assert check_link([], JOB, 1, expires, signature, NOW) is LinkState.FORGED


def test_no_link_lasts_longer_than_the_longest_span() -> None:
    expires, signature = parameters(sign_link(KEY, JOB, 1, NOW + MAX_SPAN_S + 1))
    assert check_link([KEY], JOB, 1, expires, signature, NOW) is LinkState.FORGED


@pytest.mark.parametrize(
    ("expires", "signature"),
    [
        ("", ""),
        ("soon", "0" * 64),
        ("-5", "0" * 64),
        ("١٢٣", "0" * 64),
        ("9" * 400, "0" * 64),
        (str(NOW + 5), "é\ud800"),
    ],
)
def test_rubbish_is_forged_and_no_error(expires: str, signature: str) -> None:
    assert check_link([KEY], JOB, 1, expires, signature, NOW) is LinkState.FORGED


@pytest.mark.parametrize("spelling", ["0{}", "{}0", " {}", "+{}", "{}.0"])
def test_a_link_written_otherwise_is_another_link(spelling: str) -> None:
    expires, signature = parameters(sign_link(KEY, JOB, 1, NOW + 60))
    assert check_link([KEY], JOB, 1, spelling.format(expires), signature, NOW) is LinkState.FORGED
