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
    with pytest.raises(TokenRejected, match=r"^no client in its claims$"):
        holder(claims)


def test_the_client_names_the_tenant() -> None:
    assert holder({"client_id": "lab"}).tenant == SOUTH


@pytest.mark.parametrize("value", ["other", "*", "", None, ["ward"], 7])
def test_a_value_without_an_entry_names_no_tenant(value: Any) -> None:
    with pytest.raises(TokenRejected, match=r"^no tenant for its claims$"):
        holder({"client_id": "ward", "org": value}, tenant_claim="org")


def test_a_client_names_no_tenant_where_a_claim_has_to() -> None:
    with pytest.raises(TokenRejected, match=r"^no tenant for its claims$"):
        holder({"client_id": "ward"}, tenant_claim="org")


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


def test_an_issuer_without_an_entry_has_no_audience_which_the_service_reports() -> None:
    (issuer,) = issuers_of(IssuerSettings(issuers=["corp https://a.example"]))

    assert (issuer.audience, issuer.tenants, issuer.scopes) == ("", (), ())


def test_the_claims_of_one_issuer_do_not_use_the_entries_of_another() -> None:
    settings = IssuerSettings(
        issuers=["corp https://a.example", "ward https://b.example"],
        tenants=[f"corp a {NORTH}"],
        roles=["corp writer system/Patient.cud"],
    )
    corp, ward = issuers_of(settings)

    assert corp.identify({"azp": "a", "scope": "writer"}).scopes == ("system/Patient.cud",)
    with pytest.raises(TokenRejected, match="no tenant"):
        ward.identify({"azp": "a"})


def test_a_role_of_another_issuer_grants_nothing() -> None:
    settings = IssuerSettings(
        issuers=["corp https://a.example", "ward https://b.example"],
        tenants=[f"ward a {NORTH}"],
        roles=["corp writer system/Patient.cud"],
    )

    assert issuers_of(settings)[1].identify({"azp": "a", "scope": "writer"}).scopes == ()


@pytest.mark.parametrize("scope", ["system/Patient.rs", "webhooks.read"])
def test_scopes_of_the_service_need_no_role(scope: str) -> None:
    assert holder({"client_id": "ward", "scope": scope}).scopes == (scope,)


@pytest.mark.parametrize("scope", ["user/Patient.rs", "patient/Patient.rs", "admin.write"])
def test_other_scopes_grant_nothing_without_a_role(scope: str) -> None:
    assert holder({"client_id": "ward", "scope": scope}).scopes == ()


def test_the_settings_name_the_claim_with_the_scopes() -> None:
    claims = {"client_id": "ward", "groups": ["writer"], "scope": "system/Patient.rs"}

    found = holder(claims, scope_claim="groups")

    assert found.scopes == ("system/Patient.cud", "system/Patient.rs")


def test_the_settings_name_the_claims_with_the_client() -> None:
    assert holder({"appid": "lab", "azp": "ward"}, client_claims=["appid", "azp"]).client == "lab"


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


# Settings


def problems(**changes: Any) -> str:
    with pytest.raises(ValueError, match=r"must|begins|several") as refusal:
        IssuerSettings(**{"issuers": ["corp https://a.example"], **changes})
    return str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"audiences": ["corp"]}, "audiences: 'corp' must be NAME AUDIENCE"),
        ({"tenants": ["corp a b c"]}, "tenants: 'corp a b c' must be NAME VALUE TENANT"),
        ({"scopes": ["corp"]}, "scopes: 'corp' must be NAME SCOPE SCOPE ..."),
        ({"roles": ["corp a"]}, "roles: 'corp a' must be NAME WORD SCOPE SCOPE ..."),
        (
            {"roles": ["ward a b"]},
            "roles: 'ward a b' begins with the name of no issuer in issuers",
        ),
        ({"audiences": ["corp a", "corp b"]}, "audiences: corp has several"),
        ({"client_claims": []}, "client_claims and scope_claim must name claims"),
        ({"scope_claim": ""}, "client_claims and scope_claim must name claims"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_with_its_form(
    changes: dict[str, Any], problem: str
) -> None:
    assert problems(**changes) == problem


def test_problems_are_separated() -> None:
    assert problems(audiences=["corp"], scope_claim="") == (
        "audiences: 'corp' must be NAME AUDIENCE; client_claims and scope_claim must name claims"
    )


def test_an_issuer_may_have_one_scope_or_many() -> None:
    many = " ".join(["corp", *(f"system/A{number}.r" for number in range(99))])

    settings = IssuerSettings(issuers=["corp https://a.example"], scopes=["corp x", many])

    assert [len(words) for words in settings.of("corp", "scopes")] == [1, 99]


def test_by_default_the_usual_claims_are_read() -> None:
    settings = IssuerSettings()

    assert (settings.client_claims, settings.tenant_claim) == (["client_id", "azp"], "")
    assert settings.scope_claim == "scope"


def test_all_entries_that_cannot_be_read_are_named() -> None:
    issuers = ["corp https://login.example", "ward https://ward.example"]
    wrong: dict[str, Any] = {
        "audiences": ["corp a", "corp b", "ward c", "ward d"],
        "roles": ["lab a b"],
        "client_claims": [],
    }

    with pytest.raises(ValueError, match="issuer") as refused:
        IssuerSettings(issuers=issuers, **wrong)

    assert str(refused.value).split("; ") == [
        "roles: 'lab a b' begins with the name of no issuer in issuers",
        "audiences: corp has several",
        "audiences: ward has several",
        "client_claims and scope_claim must name claims",
    ]


def test_the_entries_of_an_issuer_are_those_that_begin_with_its_whole_name() -> None:
    settings = IssuerSettings(
        issuers=["corp https://login.example", "corp2 https://other.example"],
        audiences=["corp2 b", "corp a"],
        scopes=["corp system/*.r", "corp2 system/*.s"],
    )

    assert settings.of("corp", "audiences") == [["a"]]
    assert settings.of("corp2", "scopes") == [["system/*.s"]]


@pytest.mark.parametrize(("client", "tenant"), [("lab", SOUTH), ("ward", NORTH)])
def test_an_entry_for_a_value_counts_before_that_for_every_token(client: str, tenant: str) -> None:
    tenants = [f"corp lab {SOUTH}", f"corp * {NORTH}"]

    for some in (tenants, tenants[::-1]):
        assert holder({"client_id": client}, tenants=some).tenant == tenant
