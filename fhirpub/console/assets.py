"""The files that pages use: styles, scripts and the icon, under names that change with them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

_TYPES = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, with its type and a digest of what is in it."""

    content: bytes = field(repr=False)
    media_type: str
    digest: str


def _read(name: str, media_type: str) -> Asset:
    content = resources.files("fhirpub.console").joinpath("files", name).read_bytes()
    return Asset(content, media_type, hashlib.sha256(content).hexdigest()[:12])


ASSETS: Mapping[str, Asset] = {name: _read(name, type_) for name, type_ in _TYPES.items()}


def url_of(name: str) -> str:
    """Return the path of a file; it differs for each content."""
    return f"/console/assets/{name}?v={ASSETS[name].digest}"
