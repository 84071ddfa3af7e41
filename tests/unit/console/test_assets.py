"""The files of pages: with their types, under names that change with them."""

from __future__ import annotations

import hashlib
from importlib import resources

import pytest

from fhirpub.console.assets import ASSETS, url_of


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("console.css", "text/css; charset=utf-8"),
        ("console.js", "text/javascript; charset=utf-8"),
        ("htmx.min.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_each_file_has_its_type_and_the_digest_of_its_content(name: str, media_type: str) -> None:
    content = resources.files("fhirpub.console").joinpath("files", name).read_bytes()
    asset = ASSETS[name]

    assert (asset.content, asset.media_type) == (content, media_type)
    assert asset.digest == hashlib.sha256(content).hexdigest()[:12]


def test_the_address_of_a_file_has_its_digest() -> None:
    digest = ASSETS["console.css"].digest

    assert url_of("console.css") == f"/console/assets/console.css?v={digest}"
