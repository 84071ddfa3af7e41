"""The answers of an OpenID Connect provider: what is believed of them, and what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.console.openid import OpenIdProvider, ProviderUnavailable, SignInRequest
from fhirpub.console.provider_client import Document
from fhirpub.errors import NotAuthenticated
from tests.unit.auth.assertions.signing import NOW, b64url, key_set, pair

ISSUER = "https://login.example.org"
KEYS = pair("ES256", "of-the-provider")
CONFIG = ConsoleConfig(oidc_issuer=ISSUER, oidc_client_id="console", oidc_client_secret="s")
REQUEST = SignInRequest.create()


@dataclass
class Answers:
    """What a provider answers; `claims` are those of the ID token."""

    claims: dict[str, Any] = field(
        default_factory=lambda: {
            "iss": ISSUER,
            "aud": "console",
            "sub": "1",
            "exp": NOW + 300,
            "iat": NOW,
            "nonce": REQUEST.nonce,
            "email": "ada@lab.example",
            "email_verified": True,
        }
    )
    token: str = ""
    user_info: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Mapping[str, str]] = field(default_factory=dict)

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        path = urlsplit(url).path
        self.sent[path] = {"method": method, **(form or {}), **(headers or {})}
        documents = {
            "/.well-known/openid-configuration": {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize?realm=lab",
                "token_endpoint": f"{ISSUER}/token",
                "userinfo_endpoint": f"{ISSUER}/me",
                "jwks_uri": f"{ISSUER}/keys",
                **self.configuration,
            },
            "/token": {"id_token": self.token or KEYS.sign(self.claims), "access_token": "t"},
            "/me": self.user_info,
        }
        if path == "/keys":
            return Document(body=key_set(KEYS))
        return Document(body=orjson.dumps(documents[path]))


def provider(answers: Answers, config: ConsoleConfig = CONFIG) -> OpenIdProvider:
    redirect = "https://console.example.org/console/sign-in/provider"
    return OpenIdProvider(config, redirect=redirect, request=answers, clock=lambda: NOW * 1000)


def identify(answers: Answers, config: ConsoleConfig = CONFIG) -> str:
    return asyncio.run(provider(answers, config).identify("code", REQUEST))


def test_the_verified_email_says_who_signed_in() -> None:
    assert identify(Answers()) == "ada@lab.example"


def test_the_code_is_exchanged_with_the_proof_of_who_asked_for_it() -> None:
    answers = Answers()
    place = urlsplit(asyncio.run(provider(answers).address(REQUEST)))
    asked = {name: values[0] for name, values in parse_qs(place.query).items()}

    identify(answers)

    assert asked["realm"] == "lab"
    assert asked["code_challenge"] == REQUEST.challenge
    assert (asked["state"], asked["nonce"]) == (REQUEST.state, REQUEST.nonce)
    assert answers.sent["/token"]["code_verifier"] == REQUEST.verifier
    assert answers.sent["/token"]["Authorization"] == "Basic Y29uc29sZTpz"


def test_a_public_client_sends_no_secret() -> None:
    config = ConsoleConfig(oidc_issuer=ISSUER, oidc_client_id="console")
    answers = Answers()

    assert identify(answers, config) == "ada@lab.example"
    assert "Authorization" not in answers.sent["/token"]


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"aud": "another-client"},
        {"iss": "https://other.example.org"},
        {"exp": NOW - 1},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": ["ada@lab.example"]},
        {"email": ""},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_refused(changes: dict[str, Any]) -> None:
    answers = Answers()
    claims = {**answers.claims, **changes}
    answers.claims = {name: value for name, value in claims.items() if value is not None}

    with pytest.raises(NotAuthenticated):
        identify(answers)


@pytest.mark.parametrize("kind", ["none", "another key", "no token"])
def test_a_token_that_the_provider_has_not_signed_is_refused(kind: str) -> None:
    answers = Answers()
    payload = b64url(orjson.dumps(answers.claims))
    head = b64url(orjson.dumps({"alg": "none", "kid": KEYS.private.kid}))
    answers.token = {
        "none": f"{head}.{payload}.",
        "another key": pair("ES384", "of-the-provider").sign(answers.claims),
        "no token": "text",
    }[kind]

    with pytest.raises(NotAuthenticated):
        identify(answers)


def test_a_claim_that_the_token_lacks_comes_from_the_user_info() -> None:
    answers = Answers(user_info={"sub": "1", "email": "ada@lab.example", "email_verified": True})
    del answers.claims["email"], answers.claims["email_verified"]

    assert identify(answers) == "ada@lab.example"
    assert answers.sent["/me"]["Authorization"] == "Bearer t"


def test_the_user_info_of_another_person_is_not_believed() -> None:
    answers = Answers(user_info={"sub": "2", "email": "ada@lab.example", "email_verified": True})
    del answers.claims["email"]

    with pytest.raises(NotAuthenticated):
        identify(answers)


def test_another_claim_needs_no_verification() -> None:
    config = ConsoleConfig(
        oidc_issuer=ISSUER, oidc_client_id="console", oidc_client_secret="s", oidc_claim="sub"
    )

    assert identify(Answers(), config) == "1"


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://other.example.org"},
        {"token_endpoint": "http://login.example.org/token"},
        {"authorization_endpoint": None},
    ],
    ids=str,
)
def test_a_configuration_of_something_else_is_not_followed(
    configuration: dict[str, Any],
) -> None:
    with pytest.raises(ProviderUnavailable):
        identify(Answers(configuration=configuration))
