from __future__ import annotations

import pytest

from fhirpub.config.console import origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://console.example.org", "https://console.example.org"),
        ("https://Console.Example.org:443/fhirpub", "https://console.example.org"),
        ("https://console.example.org:8443", "https://console.example.org:8443"),
        ("http://localhost:80", "http://localhost"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_written_as_browsers_do(url: str, origin: str) -> None:
    assert origin_of(url) == origin
