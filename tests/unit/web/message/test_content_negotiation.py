"""Which coding of a response a client accepts."""

from __future__ import annotations

import pytest

from fhirpub.web.message.content_negotiation import accepts_gzip


@pytest.mark.parametrize(
    "accepted",
    [
        "gzip",
        "GZIP",
        "x-gzip",
        "gzip, deflate, br",
        "deflate, gzip;q=1.0, *;q=0.5",
        "*",
        "gzip;q=0.5, identity;q=0.5",
        "br;q=1.0, gzip;q=0.8, identity;q=0.1",
        "identity;q=0, gzip;q=0.001",
    ],
)
def test_gzip_is_chosen_where_it_is_welcome(accepted: str) -> None:
    assert accepts_gzip(accepted)


@pytest.mark.parametrize(
    "refused",
    [
        "",
        "identity",
        "br",
        "gzip;q=0",
        "gzip;q=0, *",
        "gzip;q=0.0",
        "*;q=0",
        "gzip;q=0.2, identity",
        "gzip;q=0.2, *;q=0.3",
        "gzip;q=much",
        "gzipped",
        ";q=1, ,",
    ],
)
def test_no_coding_is_chosen_where_gzip_is_refused_or_less_welcome(refused: str) -> None:
    assert not accepts_gzip(refused)
