"""Requests to revoke a token, and those that have to come with an assertion."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from urllib.parse import urlencode

import pytest

from fhirpub.auth.assertions.verification import TYPE
from fhirpub.auth.token_request import Credentials, Message, read_assertion, read_revocation
from fhirpub.errors import TokenRefused
from tests.unit.auth.assertions.signing import CLIENT_ID, claims, pair
from tests.unit.auth.conftest import FORM

ASSERTED = {
    "client_assertion_type": TYPE,
    "client_assertion": pair("ES384").sign(claims()),
}
ONE_WAY = "the client must authenticate in one way only"


def message(fields: dict[str, str], *authorization: str) -> Message:
    return Message(content_type=FORM, body=urlencode(fields).encode(), authorization=authorization)


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_a_revocation_has_the_token_and_the_proof() -> None:
    sent = {"token": "a.b.c", "client_id": "me", "client_secret": "s3cret"}

    found = read_revocation(message(sent))

    assert found.token == "a.b.c"
    assert found.credentials == Credentials(client_id="me", client_secret="s3cret")
    assert "a.b.c" not in repr(found)


def test_a_revocation_may_come_with_basic() -> None:
    found = read_revocation(message({"token": "t"}, basic("me:x")))

    assert found.credentials == Credentials(client_id="me", client_secret="x", basic=True)


@pytest.mark.parametrize(
    ("fields", "authorization", "words"),
    [
        ({}, [], "missing: token, client_id, client_secret"),
        ({}, [basic("me:x")], "missing: token"),
        ({"client_assertion": "x"}, [], "missing: token, client_assertion_type"),
        ({"token": "t"}, [], "missing: client_id, client_secret"),
    ],
)
def test_what_a_revocation_lacks_is_named(
    fields: dict[str, str], authorization: Sequence[str], words: str
) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_revocation(message(fields, *authorization))

    assert (refused.value.error, str(refused.value)) == ("invalid_request", words)


def test_a_request_that_has_to_come_with_an_assertion_is_read() -> None:
    found = read_assertion(message({**ASSERTED, "client_id": CLIENT_ID}, "Bearer old"))

    assert (found.subject, found.kid) == (CLIENT_ID, "k1")


@pytest.mark.parametrize(
    ("fields", "authorization", "error", "words", "client"),
    [
        (
            {"client_id": "me", "client_secret": "s3cret"},
            [],
            "unauthorized_client",
            "this is for clients with a private key: a secret is not enough",
            "me",
        ),
        (
            {},
            [basic("me:x")],
            "unauthorized_client",
            "this is for clients with a private key: a secret is not enough",
            "",
        ),
        ({}, [], "invalid_request", "missing: client_assertion, client_assertion_type", ""),
        ({"client_assertion": "x"}, [], "invalid_request", "missing: client_assertion_type", ""),
        ({**ASSERTED, "client_secret": "x"}, [], "invalid_request", ONE_WAY, ""),
        ({**ASSERTED}, [basic("me:x")], "invalid_request", ONE_WAY, ""),
    ],
)
def test_a_request_without_an_assertion_alone_is_refused(
    fields: dict[str, str], authorization: Sequence[str], error: str, words: str, client: str
) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_assertion(message(fields, *authorization))

    assert (refused.value.error, str(refused.value)) == (error, words)
    assert refused.value.client == client


@pytest.mark.parametrize("header", ["Basic ?", basic("me"), basic(":x"), basic("me:%zz")])
def test_basic_from_which_nothing_can_be_read_is_of_no_client(header: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_revocation(message({"token": "t"}, header))

    assert (refused.value.error, refused.value.client) == ("invalid_client", "")


def test_an_assertion_that_can_be_none_is_of_no_client() -> None:
    with pytest.raises(TokenRefused) as refused:
        read_assertion(message({**ASSERTED, "client_assertion": "a.b.c"}))

    assert (refused.value.error, refused.value.client) == ("invalid_client", "")


def test_a_reason_that_must_not_be_sent_is_left_out() -> None:
    body = b'{"token": "t\t"}'

    with pytest.raises(TokenRefused) as refused:
        read_revocation(Message(content_type="application/json", body=body))

    assert str(refused.value) == "the body is not valid JSON"


@pytest.mark.parametrize("sent", [{"client_id": "me", "client_secret": "x"}, ASSERTED])
def test_a_token_that_comes_along_with_a_revocation_is_ignored(sent: dict[str, str]) -> None:
    found = read_revocation(message({"token": "t", **sent}, "bearer a.b.c"))

    assert found.token == "t"
