"""Which addresses are one endpoint."""

import pytest

from catalog.endpoints import EndpointError, normalized_endpoint


@pytest.mark.parametrize(
    "spelling",
    [
        "https://ark.example.com/api/v3",
        "https://ark.example.com/api/v3/",
        "https://ARK.Example.com/api/v3",
        "HTTPS://ark.example.com:443/api/v3",
        "https://ark.example.com.//api//v3",
        "  https://ark.example.com/api/v3 ",
    ],
)
def test_spellings_of_one_endpoint_are_one(spelling: str) -> None:
    assert normalized_endpoint(spelling) == "https://ark.example.com:443/api/v3"


@pytest.mark.parametrize(
    "other",
    [
        "http://ark.example.com/api/v3",
        "https://ark.example.com:8443/api/v3",
        "https://ark.example.com/api/V3",
        "https://ark.example.com",
        "https://eu.ark.example.com/api/v3",
    ],
)
def test_another_scheme_host_port_or_path_is_another_endpoint(other: str) -> None:
    assert normalized_endpoint(other) != normalized_endpoint("https://ark.example.com/api/v3")


def test_an_ipv6_host_keeps_its_brackets() -> None:
    assert normalized_endpoint("http://[::1]:8188") == "http://[::1]:8188"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ark.example.com",
        "ftp://ark.example.com",
        "https://",
        "https://user:password@ark.example.com",
        "https://ark.example.com/api?key=1",
        "https://ark.example.com:port",
        "https://ark.example.com:99999",
    ],
)
def test_what_is_no_base_address_is_refused(address: str) -> None:
    with pytest.raises(EndpointError):
        normalized_endpoint(address)


@pytest.mark.parametrize("scheme", ["https", "ftp"])
def test_a_refusal_never_repeats_a_password(scheme: str) -> None:
    with pytest.raises(EndpointError) as caught:
        normalized_endpoint(f"{scheme}://user:hunter2@ark.example.com")
    assert "hunter2" not in str(caught.value)
