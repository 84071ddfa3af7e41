"""Who a token of an issuer is, by its claims and the settings."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import TokenHolder, TokenRejected
from fhirpub_oidc.claims import issuers_of
from fhirpub_oidc.settings import IssuerSettings

NORTH, SOUTH = "3f0c8b0e-1111-4222-8333-444455556666", "3f0c8b0e-2222-4222-8333-444455556666"


def holder(claims: dict[str, Any], **changes: Any) -> TokenHolder:
    usual: dict[str, Any] = {
        "issuers": ["corp https://login.example"],
        "audiences": ["corp a"],
        "tenants": [f"corp ward {NORTH}", f"corp lab {SOUTH}"],
        "scopes": ["corp system/*.rs"],
        "roles": ["corp writer system/Patient.cud system/Patient.rs"],
    }
    (issuer,) = issuers_of(IssuerSettings(**{**usual, **changes}))
    return issuer.identify(claims)


@pytest.mark.parametrize(
    ("claims", "client"),
    [
        ({"client_id": "ward", "azp": "lab"}, "ward"),
        ({"azp": "lab"}, "lab"),
        ({"client_id": None, "azp": "lab"}, "lab"),
    ],
)
def test_the_first_claim_that_there_is_names_the_client(
    claims: dict[str, Any], client: str
) -> None:
    assert holder(claims).client == client


@pytest.mark.parametrize("claims", [{}, {"sub": "ward"}, {"client_id": ["ward"], "azp": "lab"}])
def test_a_token_without_a_client_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(TokenRejected, match="no client"):
        holder(claims)


def test_the_client_names_the_tenant() -> None:
    assert holder({"client_id": "lab"}).tenant == SOUTH


@pytest.mark.parametrize("value", ["other", "*", "", None, ["ward"], 7])
def test_a_value_without_an_entry_names_no_tenant(value: Any) -> None:
    with pytest.raises(TokenRejected, match="no tenant"):
        holder({"client_id": "ward", "org": value}, tenant_claim="org")


@pytest.mark.parametrize("value", ["other", "*", None, ["ward"]])
def test_all_other_values_may_have_an_entry(value: Any) -> None:
    tenants = [f"corp ward {NORTH}", f"corp * {SOUTH}"]

    found = holder({"client_id": "ward", "org": value}, tenant_claim="org", tenants=tenants)

    assert found.tenant == SOUTH


@pytest.mark.parametrize(
    ("scope", "scopes"),
    [
        ("system/Patient.rs openid", ("system/Patient.rs",)),
        ("writer", ("system/Patient.cud", "system/Patient.rs")),
        ("system/Patient.rs writer", ("system/Patient.rs", "system/Patient.cud")),
        (["writer", 7, None], ("system/Patient.cud", "system/Patient.rs")),
        (["two words"], ()),
        ("", ()),
        ({"writer": True}, ()),
        (7, ()),
    ],
)
def test_scopes_and_roles_are_granted_once_each(scope: Any, scopes: tuple[str, ...]) -> None:
    assert holder({"client_id": "ward", "scope": scope}).scopes == scopes


def test_without_the_claim_there_are_no_scopes() -> None:
    assert holder({"client_id": "ward"}).scopes == ()


def test_an_issuer_has_each_of_its_tenants_once() -> None:
    made = issuers_of(
        IssuerSettings(
            issuers=["corp https://a.example", "ward https://b.example"],
            audiences=["ward b", "corp a"],
            tenants=[f"corp a {NORTH}", f"corp b {NORTH}", f"ward a {SOUTH}", f"corp c {SOUTH}"],
            scopes=["corp x y", "ward z", "corp w"],
        )
    )

    assert [(one.name, one.url, one.audience) for one in made] == [
        ("corp", "https://a.example", "a"),
        ("ward", "https://b.example", "b"),
    ]
    assert [one.tenants for one in made] == [(NORTH, SOUTH), (SOUTH,)]
    assert [one.scopes for one in made] == [("x", "y", "w"), ("z",)]
