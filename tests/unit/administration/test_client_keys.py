"""Public keys of clients, as operators give and see them."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients
from fhirpub.administration.client_keys import JWKS, JWKS_URL, keys_given, shown_keys
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import loads
from tests.unit.administration.office import Office

URL = "https://93.184.216.34/jwks"
SET: dict[str, Any] = {"keys": [{"kty": "EC"}]}


def given(office: Office, **fields: Any) -> dict[str, str]:
    return keys_given(office.administration, fields, tenant="t")


async def test_without_keys_none_are_given(office: Office) -> None:
    assert given(office) == given(office, jwks=None, jwks_url="") == {"jwks": "", "jwks_url": ""}


async def test_a_key_set_is_kept_as_text(office: Office) -> None:
    found = given(office, jwks=SET)

    assert (loads(found["jwks"].encode()), found["jwks_url"]) == (SET, "")


async def test_a_url_is_kept_in_its_canonical_form(office: Office) -> None:
    assert given(office, jwks_url="HTTPS://93.184.216.34:443/jwks") == {
        "jwks": "",
        "jwks_url": URL,
    }


async def test_both_are_refused_at_the_url(office: Office) -> None:
    with pytest.raises(InvalidContent, match="a client has either") as refused:
        given(office, jwks=SET, jwks_url=URL)

    assert [issue.expression for issue in refused.value.issues] == ["jwks_url"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/jwks",
        "http://93.184.216.34/jwks",
        "https://127.0.0.1/jwks",
        "https://93.184.216.34:99/j",
        "x",
    ],
)
async def test_a_url_that_webhooks_may_not_have_is_refused(
    office: Office, lab: str, url: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        given(office, jwks_url=url)
    with pytest.raises(InvalidContent) as not_added:
        await office.run(clients.ADD, tenant=lab, jwks_url=url)

    for problem in (refused.value, not_added.value):
        assert {issue.expression for issue in problem.issues} == {"jwks_url"}
    assert await office.store.clients() == []


async def test_a_network_that_is_allowed_to_webhooks_is_allowed(office: Office) -> None:
    webhooks = WebhooksConfig(allow_networks=["127.0.0.1/32"], ports=[443, 99])

    found = given(office.with_config(webhooks=webhooks), jwks_url="https://127.0.0.1:99/j")

    assert found["jwks_url"] == "https://127.0.0.1:99/j"


async def test_keys_are_shown_by_their_names_or_their_url(office: Office, lab: str) -> None:
    _private, public = new_key_pair()
    _private, other = new_key_pair()
    kid = public["keys"][0]["kid"]
    wanted: list[tuple[dict[str, Any], Any]] = [
        ({"jwks": dict(public)}, [kid]),
        ({"jwks": {"keys": [*public["keys"], *other["keys"]]}}, [kid, other["keys"][0]["kid"]]),
        ({"jwks_url": URL}, URL),
        ({"jwks_url": "HTTPS://Lab.Example.org/jwks"}, "https://lab.example.org/jwks"),
        ({}, None),
    ]

    for fields, shown in wanted:
        added = await office.run(clients.ADD, tenant=lab, **fields)
        client = await office.store.client(added["client_id"])
        assert client is not None
        assert (shown_keys(client), added["keys"]) == (shown, shown)
        assert ("client_secret" in added) == (shown is None)


def test_a_key_set_is_an_object_and_its_address_a_text() -> None:
    assert (JWKS.name, JWKS.type, JWKS.place) == ("jwks", "object", "body")
    assert (JWKS_URL.name, JWKS_URL.type, JWKS_URL.place) == ("jwks_url", "string", "body")
    assert not JWKS.required
    assert not JWKS_URL.required
