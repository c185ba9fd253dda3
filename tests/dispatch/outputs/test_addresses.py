"""Which addresses may be fetched: a corpus of tricks, each of which must end before a connection begins."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.outputs.addresses import Refusal, Target, judge_address, origin_of, read_url
from dispatch.outputs.fetching import FetchRefused, fetch
from dispatch.outputs.limits import FetchLimits
from tests.dispatch.outputs.loopback import answering

R = Refusal

BY_TEXT = [
    # schemes
    ("http://media.example/a.mp4", R.SCHEME),
    ("ftp://media.example/a.mp4", R.SCHEME),
    ("file:///etc/passwd", R.SCHEME),
    ("gopher://127.0.0.1:6379/_FLUSHALL", R.SCHEME),
    ("data:text/html,hello", R.SCHEME),
    ("javascript:alert(1)", R.SCHEME),
    ("//media.example/a.mp4", R.SCHEME),
    ("media.example/a.mp4", R.SCHEME),
    ("", R.BAD_URL),
    # what parsers read in different ways
    ("https://user:secret@media.example/a.mp4", R.CREDENTIALS),
    ("https://media.example@127.0.0.1/", R.CREDENTIALS),
    ("https://@127.0.0.1/", R.CREDENTIALS),
    ("https://127.0.0.1\\@media.example/", R.BAD_URL),
    ("https://media.example\\.evil.example/", R.BAD_URL),
    ("https://media.example/a b", R.BAD_URL),
    ("https://media.example/a\r\nHost: internal", R.BAD_URL),
    ("https://media\t.example/", R.BAD_URL),
    (" https://media.example/", R.BAD_URL),
    ("https://media.example:99999/", R.BAD_URL),
    ("https://media.example:abc/", R.BAD_URL),
    ("https://[::1/", R.BAD_URL),
    ("https://media.example/" + "a" * 9000, R.BAD_URL),
    # ports
    ("https://media.example:22/", R.PORT),
    ("https://media.example:6379/", R.PORT),
    ("https://media.example:80/", R.PORT),
    ("https://media.example:0/", R.PORT),
    # hosts that are none
    ("https:///a.mp4", R.HOST),
    ("https://media..example/", R.HOST),
    ("https://.media.example/", R.HOST),
    ("https://127%2e0%2e0%2e1/", R.HOST),
    ("https://127。0。0。1/", R.HOST),
    ("https://１２７.0.0.1/", R.HOST),
    ("https://①②⑦.0.0.1/", R.HOST),
    ("https://ⓛocalhost/", R.HOST),
    ("https://[fe80::1%25eth0]/", R.HOST),
    ("https://[v1.abc]/", R.HOST),
    ("https://-media.example/", R.HOST),
    # one address, many spellings
    ("https://2130706433/", R.NUMERIC_HOST),
    ("https://0x7f000001/", R.NUMERIC_HOST),
    ("https://0x7f.0.0.1/", R.NUMERIC_HOST),
    ("https://0X7F.1/", R.NUMERIC_HOST),
    ("https://017700000001/", R.NUMERIC_HOST),
    ("https://0177.0.0.1/", R.NUMERIC_HOST),
    ("https://127.1/", R.NUMERIC_HOST),
    ("https://127.0.1/", R.NUMERIC_HOST),
    ("https://127.000.000.001/", R.NUMERIC_HOST),
    ("https://256.1.1.1/", R.NUMERIC_HOST),
    ("https://0/", R.NUMERIC_HOST),
    ("https://0x/", R.NUMERIC_HOST),
    ("https://169.254.43518/", R.NUMERIC_HOST),
    ("https://1.2.3.4.5/", R.NUMERIC_HOST),
    # names of this place
    ("https://localhost/", R.LOCAL_NAME),
    ("https://LOCALHOST./", R.LOCAL_NAME),
    ("https://a.localhost/", R.LOCAL_NAME),
    ("https://metadata.google.internal/computeMetadata/v1/", R.LOCAL_NAME),
    ("https://printer.local/", R.LOCAL_NAME),
    ("https://router.home.arpa/", R.LOCAL_NAME),
    ("https://nas.lan/", R.LOCAL_NAME),
    ("https://intranet/", R.LOCAL_NAME),
    # literal addresses
    ("https://127.0.0.1/", R.PRIVATE_ADDRESS),
    ("https://127.255.255.254/", R.PRIVATE_ADDRESS),
    ("https://0.0.0.0/", R.PRIVATE_ADDRESS),
    ("https://10.0.0.1/", R.PRIVATE_ADDRESS),
    ("https://172.16.0.1/", R.PRIVATE_ADDRESS),
    ("https://192.168.1.1/", R.PRIVATE_ADDRESS),
    ("https://169.254.169.254/latest/meta-data/", R.PRIVATE_ADDRESS),
    ("https://100.100.100.200/", R.PRIVATE_ADDRESS),
    ("https://168.63.129.16/", R.PRIVATE_ADDRESS),
    ("https://224.0.0.1/", R.PRIVATE_ADDRESS),
    ("https://255.255.255.255/", R.PRIVATE_ADDRESS),
    ("https://[::]/", R.PRIVATE_ADDRESS),
    ("https://[::1]/", R.PRIVATE_ADDRESS),
    ("https://[::ffff:127.0.0.1]/", R.PRIVATE_ADDRESS),
    ("https://[::ffff:7f00:1]/", R.PRIVATE_ADDRESS),
    ("https://[0:0:0:0:0:ffff:a9fe:a9fe]/", R.PRIVATE_ADDRESS),
    ("https://[::127.0.0.1]/", R.PRIVATE_ADDRESS),
    ("https://[64:ff9b::169.254.169.254]/", R.PRIVATE_ADDRESS),
    ("https://[64:ff9b:1::a00:1]/", R.PRIVATE_ADDRESS),
    ("https://[2002:7f00:1::]/", R.PRIVATE_ADDRESS),
    ("https://[2002:5db8:d822::1]/", R.PRIVATE_ADDRESS),
    ("https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", R.PRIVATE_ADDRESS),
    ("https://[fe80::1]/", R.PRIVATE_ADDRESS),
    ("https://[fec0::1]/", R.PRIVATE_ADDRESS),
    ("https://[fc00::1]/", R.PRIVATE_ADDRESS),
    ("https://[fd00:ec2::254]/", R.PRIVATE_ADDRESS),
    ("https://[ff02::1]/", R.PRIVATE_ADDRESS),
    ("https://[2001:db8::1]/", R.PRIVATE_ADDRESS),
]

BY_ANSWER = [
    ["127.0.0.1"],
    ["10.1.2.3"],
    ["192.0.0.8"],
    ["192.0.2.1"],
    ["198.18.0.1"],
    ["240.0.0.1"],
    ["100.64.0.1"],
    ["192.88.99.1"],
    ["169.254.169.254"],
    ["::1"],
    ["::ffff:10.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["2002:a00:1::1"],
    ["fe80::1%eth0"],
    ["fd12::1"],
    ["93.184.216.34", "127.0.0.1"],
    ["127.0.0.1", "93.184.216.34"],
    ["2606:2800:220:1:248:1893:25c8:1946", "::1"],
    ["no address at all"],
]


def unasked(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} was resolved although its text is refused")


@pytest.mark.parametrize(("url", "reason"), BY_TEXT)
def test_a_url_of_the_corpus_is_refused_before_anything_is_resolved_or_connected(
    url: str, reason: Refusal, tmp_path: Path, public_only: FetchLimits, connections: list[str]
) -> None:
    assert fetch(url, tmp_path, public_only, resolve=unasked) == FetchRefused(reason)
    assert connections == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("addresses", BY_ANSWER)
def test_a_name_with_one_address_of_ours_is_refused_before_connecting(
    addresses: list[str], tmp_path: Path, public_only: FetchLimits, connections: list[str]
) -> None:
    outcome = fetch("https://media.example/a.mp4", tmp_path, public_only, resolve=answering(*addresses))
    assert outcome == FetchRefused(R.PRIVATE_ADDRESS)
    assert connections == []


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "2606:2800:220:1:248:1893:25c8:1946",
        "64:ff9b::5db8:d822",
        "::ffff:1.1.1.1",
    ],
)
def test_a_strangers_address_is_allowed(address: str) -> None:
    assert judge_address(address, private_allowed=False) is None


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.5", "172.31.0.1", "192.168.0.9", "::1", "fd00::5", "::ffff:10.0.0.5"]
)
def test_the_flag_opens_loopback_and_private_networks(address: str) -> None:
    assert judge_address(address, private_allowed=True) is None


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "100.100.100.200",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_the_flag_never_opens_the_clouds_metadata_nor_groups(address: str) -> None:
    assert judge_address(address, private_allowed=True) is R.PRIVATE_ADDRESS


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_an_embedded_address_is_judged_like_itself(number: int, private_allowed: bool) -> None:
    plain = IPv4Address(number)
    judged = judge_address(str(plain), private_allowed=private_allowed)
    for disguise in (f"::ffff:{plain}", f"64:ff9b::{plain}"):
        assert judge_address(disguise, private_allowed=private_allowed) == judged


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_but_never_an_error(text: str) -> None:
    for url in (text, f"https://{text}", f"https://media.example/{text}"):
        assert isinstance(read_url(url), Target | Refusal)


def test_what_is_sent_is_built_from_the_parts_that_were_judged() -> None:
    target = read_url("HTTPS://Media.Example.:443/a/ü.mp4?sig=a%2Fb+c==#part")
    assert isinstance(target, Target)
    assert (target.host, target.port) == ("media.example", 443)
    assert target.resource == "/a/%C3%BC.mp4?sig=a%2Fb+c=="
    assert target.host_header == "media.example"


def test_an_origin_names_the_port_only_where_it_is_not_the_usual_one() -> None:
    assert origin_of("http://10.0.0.5:8188/comfy") == "http://10.0.0.5:8188"
    assert origin_of("https://[2606:4700::1111]:8443/") == "https://[2606:4700::1111]:8443"
    assert origin_of("https://media.example:443/x") == "https://media.example"
    assert origin_of("not a url") is None


def test_the_corpus_is_as_large_as_the_security_list_asks() -> None:
    assert len(BY_TEXT) + len(BY_ANSWER) >= 60
