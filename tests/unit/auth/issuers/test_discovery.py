"""The keys of an issuer are found through its own configuration only."""

from __future__ import annotations

import orjson
import pytest

from fhirpub.auth.issuers.discovery import discovering
from tests.unit.auth.issuers.site import Site

CORP = "https://login.corp.example"
PLACE = f"{CORP}/.well-known/openid-configuration"


@pytest.fixture
def site() -> Site:
    made = Site()
    made.publish(CORP, b"the keys")
    return made


async def problem(site: Site, issuer: str = CORP) -> str:
    return (await discovering(site.fetch)(issuer, "t")).problem


async def test_the_keys_are_where_the_configuration_says(site: Site) -> None:
    found = await discovering(site.fetch)(CORP, "t")

    assert (found.body, found.problem) == (b"the keys", "")
    assert site.asked == [(PLACE, "t"), (f"{CORP}/keys", "t")]


async def test_a_slash_at_the_end_of_an_issuer_is_not_doubled(site: Site) -> None:
    site.documents[PLACE] = orjson.dumps({"issuer": f"{CORP}/", "jwks_uri": f"{CORP}/keys"})

    assert await problem(site, f"{CORP}/") == ""


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"\xff",
        b"<html>",
        b'{"issuer":"https://login.corp.example"}',
        orjson.dumps({"issuer": "https://evil.example", "jwks_uri": f"{CORP}/keys"}),
        orjson.dumps({"issuer": f"{CORP}/", "jwks_uri": f"{CORP}/keys"}),
        orjson.dumps({"jwks_uri": f"{CORP}/keys"}),
        orjson.dumps({"issuer": CORP, "jwks_uri": "http://login.corp.example/keys"}),
        orjson.dumps({"issuer": CORP, "jwks_uri": "file:///etc/passwd"}),
        orjson.dumps({"issuer": CORP, "jwks_uri": [f"{CORP}/keys"]}),
    ],
)
async def test_another_configuration_leads_to_no_keys(site: Site, document: bytes) -> None:
    site.documents[PLACE] = document

    assert (await problem(site)).startswith("openid-configuration: not of this issuer")
    assert len(site.asked) == 1


async def test_the_document_that_is_missing_is_named(site: Site) -> None:
    del site.documents[f"{CORP}/keys"]
    assert await problem(site) == "status 404"
    site.documents.clear()

    assert await problem(site) == "openid-configuration: status 404"


@pytest.mark.parametrize("keys", ["http://127.0.0.1:9000/keys", "https://keys.example/a"])
async def test_an_issuer_on_this_machine_may_have_its_keys_with_or_without_https(
    keys: str,
) -> None:
    issuer, site = "http://127.0.0.1:9000", Site()
    site.publish(issuer, b"", jwks_uri=keys)
    site.documents[keys] = b"the keys"

    assert (await discovering(site.fetch)(issuer, "t")).body == b"the keys"


@pytest.mark.parametrize("keys", ["ftp://127.0.0.1/keys", "http:/keys", "//127.0.0.1/keys", ""])
async def test_an_issuer_on_this_machine_has_its_keys_nowhere_else(keys: str) -> None:
    issuer, site = "http://127.0.0.1:9000", Site()
    site.publish(issuer, b"", jwks_uri=keys)
    site.documents[keys] = b"the keys"

    assert (await problem(site, issuer)).endswith("or without a jwks_uri")


async def test_what_is_not_found_has_no_keys(site: Site) -> None:
    site.documents.clear()

    found = await discovering(site.fetch)(CORP, "t")

    assert (found.body, found.cache_control) == (b"", "")
