"""The keys of an issuer, found by OpenID Connect Discovery 1.0."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.auth.assertions.published_keys import Fetch, Published
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import loads

_PATH = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class _NotFound:
    """Why there is no key set."""

    problem: str
    body: bytes = b""
    cache_control: str = ""


def discovering(fetch: Fetch) -> Fetch:
    """Return what gets the key set of an issuer, given how a URL is fetched.

    Both documents are read each time: an issuer may move its key set.
    """

    async def get(issuer: str, tenant: str) -> Published:
        found = await fetch(issuer.rstrip("/") + _PATH, tenant)
        if found.problem:
            return _NotFound(f"openid-configuration: {found.problem}")
        place = _key_set_url(found.body, issuer)
        if not place:
            return _NotFound("openid-configuration: not of this issuer, or without a jwks_uri")
        return await fetch(place, tenant)

    return get


def _key_set_url(body: bytes, issuer: str) -> str:
    """Return where the keys are; empty if the document is not that of the issuer.

    They come by https, unless the issuer itself needs none: one on this machine.
    """
    try:
        document = loads(body)
    except Refused:
        return ""
    if type(document) is not dict or document.get("issuer") != issuer:
        return ""
    place = document.get("jwks_uri")
    scheme = issuer.partition("://")[0]
    if type(place) is not str or not place.startswith(("https://", f"{scheme}://")):
        return ""
    return place
