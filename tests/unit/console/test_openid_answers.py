"""What the provider is asked, how long its configuration is kept, and what fails."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs

from fhirpub.config.console import ConsoleConfig
from fhirpub.console.openid import OpenIdProvider, ProviderUnavailable, SignInRequest
from fhirpub.console.provider_client import Document
from fhirpub.errors import NotAuthenticated
from fhirpub.testing.clock import HandClock
from tests.unit.auth.assertions.signing import NOW
from tests.unit.console.test_openid import CONFIG, ISSUER, REQUEST, Answers, identify

REDIRECT = "https://console.example.org/console/sign-in/provider"
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class Counted(Answers):
    """A provider that counts requests, and fails at some paths."""

    paths: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    bodies: dict[str, bytes] = field(default_factory=dict)

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        path = urlsplit(url).path
        self.paths.append(path)
        await asyncio.sleep(0)
        if path in self.failing:
            return Document(problem="status 500")
        if path in self.bodies:
            return Document(body=self.bodies[path])
        return await super().__call__(method, url, form=form, headers=headers)


def a_provider(
    answers: Answers, clock: HandClock, config: ConsoleConfig = CONFIG
) -> OpenIdProvider:
    return OpenIdProvider(config, redirect=REDIRECT, request=answers, clock=clock)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW * 1000)


def test_the_values_of_a_request_cannot_be_guessed_and_differ() -> None:
    first, second = SignInRequest.create(), SignInRequest.create()
    values = {first.state, first.nonce, first.verifier, second.state, second.nonce}

    assert len(values) == 5
    assert all(len(value) >= 43 for value in values)
    assert first.nonce not in repr(first)
    assert first.verifier not in repr(first)


def test_the_challenge_is_the_digest_of_the_verifier() -> None:
    digest = hashlib.sha256(REQUEST.verifier.encode()).digest()

    assert REQUEST.challenge == base64.urlsafe_b64encode(digest).decode().rstrip("=")


async def test_the_address_of_the_sign_in_has_all_that_the_flow_needs(clock: HandClock) -> None:
    place = urlsplit(await a_provider(Answers(), clock).address(REQUEST))

    asked = {name: values[0] for name, values in parse_qs(place.query).items()}
    assert (place.netloc, place.path) == ("login.example.org", "/authorize")
    assert asked == {
        "realm": "lab",
        "response_type": "code",
        "client_id": "console",
        "redirect_uri": REDIRECT,
        "scope": "openid email profile",
        "state": REQUEST.state,
        "nonce": REQUEST.nonce,
        "code_challenge": REQUEST.challenge,
        "code_challenge_method": "S256",
    }


async def test_an_address_without_a_query_gets_one(clock: HandClock) -> None:
    answers = Answers(configuration={"authorization_endpoint": f"{ISSUER}/authorize"})

    assert (await a_provider(answers, clock).address(REQUEST)).startswith(f"{ISSUER}/authorize?r")


async def test_a_configuration_in_an_answer_that_failed_is_not_used(clock: HandClock) -> None:
    class Failing(Answers):
        async def __call__(self, method: str, url: str, **more: Any) -> Document:
            return replace(await super().__call__(method, url, **more), problem="status 500")

    with pytest.raises(ProviderUnavailable):
        await a_provider(Failing(), clock).address(REQUEST)


def test_tokens_in_an_answer_that_failed_are_not_used() -> None:
    class Failing(Answers):
        async def __call__(self, method: str, url: str, **more: Any) -> Document:
            found = await super().__call__(method, url, **more)
            return replace(found, problem="status 400") if url.endswith("/token") else found

    with pytest.raises(NotAuthenticated):
        identify(Failing())


def test_the_code_is_exchanged_at_the_token_endpoint() -> None:
    answers = Answers()

    identify(answers)

    sent = answers.sent["/token"]
    assert (sent["method"], sent["grant_type"], sent["code"]) == (
        "POST",
        "authorization_code",
        "code",
    )
    assert sent["client_id"] == "console"
    assert sent["redirect_uri"].endswith("/console/sign-in/provider")


def test_the_secret_of_the_client_is_encoded_as_a_form_is() -> None:
    config = replace(CONFIG, oidc_client_id="con sole", oidc_client_secret="a:b/ü")
    answers = Answers()
    answers.claims["aud"] = "con sole"

    identify(answers, config)

    scheme, _, encoded = answers.sent["/token"]["Authorization"].partition(" ")
    assert scheme == "Basic"
    assert base64.b64decode(encoded) == b"con+sole:a%3Ab%2F%C3%BC"


def test_the_user_info_is_not_asked_if_the_token_has_the_claim() -> None:
    answers = Counted()

    identify(answers)

    assert "/me" not in answers.paths


def test_a_claim_of_the_token_counts_before_that_of_the_user_info() -> None:
    config = replace(CONFIG, oidc_claim="nickname")
    answers = Answers(user_info={"sub": "1", "nickname": "ada", "email": "x@lab.example"})

    assert identify(answers, config) == "ada"
    answers.claims["nickname"] = "eve"
    assert identify(answers, config) == "eve"


def test_an_email_that_the_token_calls_unverified_is_not_verified_by_the_user_info() -> None:
    info = {"sub": "1", "email": "ada@lab.example", "email_verified": True}
    answers = Answers(user_info=info)
    del answers.claims["email"]
    answers.claims["email_verified"] = False

    with pytest.raises(NotAuthenticated):
        identify(answers)


@pytest.mark.parametrize("place", [None, "http://login.example.org/me", "ftp://x", 5])
def test_a_user_info_that_is_not_reached_safely_is_not_asked(place: Any) -> None:
    answers = Counted(configuration={"userinfo_endpoint": place})
    del answers.claims["email"]

    with pytest.raises(NotAuthenticated):
        identify(answers)
    assert "/me" not in answers.paths


@pytest.mark.parametrize("body", [b"", b"[]", b"text", b"{", b'{"id_token":5}', b"{}"])
def test_an_answer_without_a_token_proves_no_code(body: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        identify(Counted(bodies={"/token": body}))


def test_a_code_that_the_provider_refuses_is_refused() -> None:
    with pytest.raises(NotAuthenticated):
        identify(Counted(failing={"/token"}))


@pytest.mark.parametrize("path", [DISCOVERY, "/keys"])
def test_a_provider_that_cannot_be_read_is_not_available(path: str) -> None:
    with pytest.raises(ProviderUnavailable):
        identify(Counted(failing={path}))


@pytest.mark.parametrize("body", [b"", b"[]", b"text", b"{}"])
def test_a_configuration_that_is_none_is_not_available(body: bytes) -> None:
    with pytest.raises(ProviderUnavailable):
        identify(Counted(bodies={DISCOVERY: body}))


async def test_the_configuration_is_read_once_for_all_sign_ins(clock: HandClock) -> None:
    answers = Counted()
    provider = a_provider(answers, clock)

    await asyncio.gather(*(provider.address(REQUEST) for _ in range(5)))

    assert answers.paths == [DISCOVERY]


@pytest.mark.parametrize(("seconds", "reads"), [(299.999, 1), (300, 2)])
async def test_the_configuration_is_kept_for_five_minutes(
    clock: HandClock, seconds: float, reads: int
) -> None:
    answers = Counted()
    provider = a_provider(answers, clock)
    await provider.address(REQUEST)

    clock.forward(seconds=seconds)
    await provider.address(REQUEST)

    assert len(answers.paths) == reads


@pytest.mark.parametrize(("seconds", "reads"), [(4.999, 1), (5, 2)])
async def test_a_provider_that_failed_is_asked_again_after_five_seconds(
    clock: HandClock, seconds: float, reads: int
) -> None:
    answers = Counted(failing={DISCOVERY})
    provider = a_provider(answers, clock)
    with pytest.raises(ProviderUnavailable):
        await provider.address(REQUEST)

    clock.forward(seconds=seconds)
    with pytest.raises(ProviderUnavailable):
        await provider.address(REQUEST)

    assert len(answers.paths) == reads


async def test_a_provider_that_is_back_is_used(clock: HandClock) -> None:
    answers = Counted(failing={DISCOVERY})
    provider = a_provider(answers, clock)
    with pytest.raises(ProviderUnavailable):
        await provider.address(REQUEST)

    answers.failing.clear()
    clock.forward(seconds=5)

    assert await provider.address(REQUEST)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (Counted(failing={DISCOVERY}), "status 500"),
        (Counted(configuration={"issuer": "https://other.example.org"}), "not of the issuer"),
    ],
)
async def test_why_a_provider_is_not_read_is_logged(
    clock: HandClock, answers: Counted, reason: str
) -> None:
    with capture_logs() as logged, pytest.raises(ProviderUnavailable):
        await a_provider(answers, clock).address(REQUEST)

    assert [(one["log_level"], one["event"], one["reason"]) for one in logged] == [
        ("warning", "OpenID provider not read", reason)
    ]


async def test_an_issuer_with_a_slash_at_its_end_has_one_configuration(clock: HandClock) -> None:
    answers = Counted(configuration={"issuer": f"{ISSUER}/"})
    config = replace(CONFIG, oidc_issuer=f"{ISSUER}/")

    assert await a_provider(answers, clock, config).address(REQUEST)
    assert answers.paths == [DISCOVERY]


def test_an_issuer_without_https_may_have_endpoints_without_it() -> None:
    issuer = "http://localhost:9000"
    config = replace(CONFIG, oidc_issuer=issuer)
    places = {name: f"{issuer}/{name[:5]}" for name in ("token_endpoint",)}
    answers = Answers(configuration={"issuer": issuer, **places})

    address = asyncio.run(a_provider(answers, HandClock(NOW * 1000), config).address(REQUEST))

    assert address.startswith(f"{ISSUER}/authorize")
