"""Addresses of documents: http or https, with a host and without a password."""

from __future__ import annotations

import pytest

from fhirpub.fhir.web_address import MAX_URL_LENGTH, is_web_address, split_web_address


@pytest.mark.parametrize(
    "url",
    [
        "http://x.example",
        "HTTPS://X.example/a?b#c",
        "https://x.example:8443/a@b",
        "https://[2001:db8::1]/",
        "https://x.example/?a=@",
    ],
)
def test_an_http_url_with_a_host_is_an_address(url: str) -> None:
    assert is_web_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.example",
        "ftp://x.example/",
        "//x.example/",
        "https:x.example",
        "https:///a",
        "https://",
        "https://:443/",
        "https://user:password@x.example/",
        "https://user@x.example/",
        "https://x.example/a b",
        "https://x.example/\n",
        "https://x.example/\x7f",
        "https://[2001:db8::1/",
        " https://x.example/",
    ],
)
def test_other_texts_are_no_addresses(url: str) -> None:
    assert not is_web_address(url)


def test_an_address_has_at_most_2048_characters() -> None:
    begin = "https://x.example/"
    longest = begin + "a" * (2048 - len(begin))

    assert MAX_URL_LENGTH == 2048
    assert is_web_address(longest)
    assert not is_web_address(longest + "a")


def test_a_host_has_at_most_255_characters() -> None:
    for end in ("", "/a", "?a", "#a"):
        assert split_web_address(f"http://{'a' * 255}{end}") is not None
        assert split_web_address(f"http://{'a' * 256}{end}") is None


def test_a_url_is_split_into_its_parts() -> None:
    parts = split_web_address("https://x.example:8443/a?b#c")

    assert parts is not None
    assert (parts.hostname, parts.port, parts.path, parts.query) == ("x.example", 8443, "/a", "b")
