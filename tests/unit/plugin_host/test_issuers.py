"""The issuers that plugins declare: what is wrong with one, and which are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_api import TokenHolder, TokenIssuer
from fhirpub.plugin_host.issuers import _problems, load_issuers
from tests.unit.plugin_host.installing import V2, Install

TENANT = "0123abcd-0123-4567-89ab-0123456789ab"
SOURCE = f"""
from fhirpub.plugin_api import TokenHolder, TokenIssuer, hookimpl

def identify(claims):
    return TokenHolder(client="c", tenant={TENANT!r})

@hookimpl
def fhirpub_authenticate(context):
    return [
        TokenIssuer(
            name=name, url=url, audience="a", tenants=({TENANT!r},), scopes=("system/*.rs",),
            identify=identify,
        )
        for name, url in %s
    ]
"""


def identify(_claims: Any) -> TokenHolder:
    raise NotImplementedError


def issuer(**changes: Any) -> TokenIssuer:
    usual: dict[str, Any] = {
        "name": "hospital",
        "url": "https://login.example.org/realms/x",
        "audience": "fhirpub",
        "tenants": (TENANT,),
        "scopes": ("system/Patient.rs",),
        "identify": identify,
    }
    return TokenIssuer(**usual | changes)


def problems(*, environment: Any = "sandbox", **changes: Any) -> list[str]:
    config = replace(Config(), auth=replace(AuthConfig(), environment=environment))
    return list(_problems(issuer(**changes), config))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"name": "a"},
        {"name": "a" * 32},
        {"audience": "x" * 255},
        {"scopes": ("system/*.rs", "system/Patient.*", "webhooks.read", "webhooks.write")},
        {"url": "https://login.example.org:8443"},
        {"url": "http://127.0.0.1:8080/x"},
        {"url": "http://localhost/x"},
        {"url": "http://[::1]/x"},
        {"url": f"https://a.example/{'x' * 237}"},
    ],
)
def test_an_issuer_that_is_right_has_no_problem(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


@pytest.mark.parametrize("name", ["", "a" * 33, "A", "1a", "a_b", "a:b", 7])
def test_a_name_has_its_form(name: Any) -> None:
    assert problems(name=name) == [
        "has a name that is not of 1 to 32 lower-case letters, digits and hyphens"
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.org",
        "https://",
        "login.example.org",
        "ftp://127.0.0.1",
        "https://[::1",
        f"https://a.example/{'x' * 238}",
        "",
        7,
    ],
)
def test_a_url_begins_with_https_and_names_a_host(url: Any) -> None:
    assert problems(url=url) == ["has a url that does not begin with https:// and name a host"]


def test_in_production_no_issuer_is_on_this_machine() -> None:
    url = "http://localhost/x"

    assert problems(url=url, environment="production") != []


@pytest.mark.parametrize("end", ["?a=b", "#x"])
def test_a_url_has_no_query_and_no_fragment(end: str) -> None:
    expected = ["has a url with a query, a fragment or a user"]

    assert problems(url=f"https://a.example/{end}") == expected
    assert problems(url="https://me@a.example/") == expected


@pytest.mark.parametrize("audience", ["", "x" * 256, None])
def test_an_audience_is_a_text_of_a_length(audience: Any) -> None:
    assert problems(audience=audience) == [
        "has an audience that is not a text of 1 to 255 characters"
    ]


@pytest.mark.parametrize("tenants", [(), [TENANT], None])
def test_tenants_are_a_tuple_of_some(tenants: Any) -> None:
    assert problems(tenants=tenants) == ["has no tenant: name each in a tuple"]


def test_each_wrong_tenant_and_scope_is_named() -> None:
    found = problems(tenants=(TENANT, "lab"), scopes=("patient/*.rs", "system/*.rs", "x"))

    assert found == [
        "has the tenant 'lab', which is not the id of a tenant",
        "has the scope 'patient/*.rs', which is not a scope such as system/Patient.rs",
        "has the scope 'x', which is not a scope such as system/Patient.rs",
    ]


def test_what_identifies_is_a_function() -> None:
    assert len(problems(identify="x")) == 1


def loaded(names: Sequence[str]) -> list[TokenIssuer]:
    config = replace(Config(), plugins=PluginsConfig(enabled=[*names]))
    return [*load_issuers(config)]


def test_the_issuers_of_enabled_plugins_are_taken_in_their_order(install: Install) -> None:
    install("one", SOURCE % [("a", "https://a.example")], group=V2)
    install("two", SOURCE % [("b", "https://b.example"), ("c", "https://c.example")], group=V2)

    assert [one.name for one in loaded(["two", "one"])] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "second", [("a", "https://b.example"), ("b", "https://a.example"), ("b", Config().issuer)]
)
def test_no_two_issuers_have_a_name_or_a_url(install: Install, second: tuple[str, str]) -> None:
    install("one", SOURCE % [("a", "https://a.example"), second], group=V2)

    with pytest.raises(PluginError, match="has the name or the url of another issuer"):
        loaded(["one"])


@pytest.mark.parametrize(("name", "url"), [(["a"], "https://a.example"), ("a", {})])
def test_a_name_or_a_url_that_is_no_text_is_reported(
    install: Install, name: Any, url: Any
) -> None:
    install("one", SOURCE % [(name, url)], group=V2)

    with pytest.raises(PluginError, match=r"has a (name that is not of|url that does not begin)"):
        loaded(["one"])


def test_a_plugin_with_the_hook_names_an_issuer(install: Install) -> None:
    install("one", SOURCE % [], group=V2)

    with pytest.raises(PluginError, match="has no issuer: name one"):
        loaded(["one"])


def test_without_plugins_there_are_no_issuers() -> None:
    assert loaded([]) == []


def test_a_hook_that_fails_is_not_said_to_have_no_issuer_as_well(install: Install) -> None:
    install("one", SOURCE.replace("return [", "raise OSError\n    return [") % [], group=V2)

    with pytest.raises(PluginError, match=r"fhirpub_authenticate failed: OSError") as refused:
        loaded(["one"])

    assert len(str(refused.value).splitlines()) == 1
