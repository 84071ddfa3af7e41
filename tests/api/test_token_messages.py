"""What a refused token is answered with: what is wrong, if its signature is verified (D-18)."""

from __future__ import annotations

import pytest

from fhirpub.auth import jwt
from fhirpub.auth.clients import disable_client
from fhirpub.auth.keys import KeyRing
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests import raw

PATH = "GET /fhir/r4/DiagnosticReport"


def ask(service: RunningService, *authorization: str) -> Answer:
    lines = [f"Authorization: {value}" for value in authorization]
    return raw.request(service, PATH, *lines).answer


def signed(lab: Integrator, service: RunningService, **changes: object) -> str:
    """Return the token of the lab with other claims, signed by the service's own key."""

    async def sign() -> str:
        ring = KeyRing(service.services.store, service.config.auth, clock=now_ms)
        return jwt.encode(jwt.decode(lab.token).payload | changes, await ring.signer())

    return service.call(sign())


@pytest.mark.parametrize(
    ("changes", "problem", "words"),
    [
        ({"exp": now_ms() // 1000 - 5}, "token-expired", "has expired: request a new one"),
        ({"aud": "https://other.example"}, "token-misdirected", "for another audience"),
        ({"iss": "https://other.example"}, "token-misdirected", "for another issuer"),
        ({"client_id": "unknown"}, "client-disabled", "is disabled: ask the operator"),
    ],
)
def test_what_is_wrong_with_a_token_of_ours_is_answered(
    service: RunningService,
    lab: Integrator,
    changes: dict[str, object],
    problem: str,
    words: str,
) -> None:
    answer = ask(service, f"Bearer {signed(lab, service, **changes)}")

    assert (answer.status, answer.problems) == (401, [problem])
    assert words in answer.issues[0]["diagnostics"]


def test_a_disabled_client_learns_that_it_is(service: RunningService, lab: Integrator) -> None:
    other = service.another_client(lab.tenant)
    service.call(disable_client(service.services.store, other.client_id))

    assert ask(service, f"Bearer {other.token}").problems == ["client-disabled"]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("Bearer  {token}", "authorization-malformed"),
        ("{token}", "authorization-malformed"),
        ("Bearer: {token}", "authorization-malformed"),
        ('Bearer "{token}"', "authorization-malformed"),
        ("Bearer <token>", "authorization-malformed"),
        ("Basic YTpi", "authorization-malformed"),
        ("Bearer", "authorization-malformed"),
        ("Bearer null", "token-invalid"),
        ("Bearer {token}A", "token-invalid"),
        ("Bearer {cut}", "token-invalid"),
    ],
)
def test_a_header_without_a_good_token_is_told_from_a_bad_token(
    service: RunningService, lab: Integrator, header: str, problem: str
) -> None:
    answer = ask(service, header.format(token=lab.token, cut=lab.token[:-6]))

    assert (answer.status, answer.problems) == (401, [problem])


def test_a_request_without_a_header_learns_which_one_to_send(service: RunningService) -> None:
    answer = ask(service)

    assert answer.problems == ["token-missing"]
    assert "the word Bearer, one space and the access token" in answer.issues[0]["diagnostics"]


def test_two_headers_are_counted(service: RunningService, lab: Integrator) -> None:
    answer = ask(service, f"Bearer {lab.token}", f"Bearer {lab.token}")

    assert "more than one header Authorization" in answer.issues[0]["diagnostics"]


def test_the_challenge_describes_the_error_as_the_body_does(
    service: RunningService, lab: Integrator
) -> None:
    answer = ask(service, f"Bearer {lab.token}A")

    assert answer.headers["www-authenticate"] == (
        'Bearer realm="fhirpub", error="invalid_token", '
        f'error_description="{answer.issues[0]["diagnostics"]}"'
    )


def test_a_forged_token_is_answered_alike_whatever_it_claims(
    service: RunningService, lab: Integrator
) -> None:
    tokens = [signed(lab, service, **changes) for changes in ({}, {"exp": 1}, {"aud": "other"})]

    bodies = {
        answer.body.replace(answer.headers["x-request-id"].encode(), b"")
        for answer in (ask(service, f"Bearer {token[:-8]}AAAAAAAA") for token in tokens)
    }

    assert len(bodies) == 1
