"""What is read of requests for tokens, and the words by which others are refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.auth.assertions.verification import TYPE, OpenedAssertion
from fhirpub.auth.token_request import (
    Credentials,
    Message,
    fields_of,
    read,
    refuse_assertion,
    refuse_credentials,
)
from fhirpub.errors import TokenRefused, TooLarge
from fhirpub.problems import ContentProblem
from tests.unit.auth.assertions.signing import claims, pair
from tests.unit.auth.conftest import FORM

JSON = "application/json"
GOOD = {
    "grant_type": "client_credentials",
    "client_id": "me",
    "client_secret": "s3cret",
    "audience": "aud",
}
BODY = urlencode(GOOD).encode()
ASSERTION = pair("ES384").sign(claims())
ASSERTED = {"client_assertion_type": TYPE, "client_assertion": ASSERTION}
ONE_WAY = "the client must authenticate in one way only"
NO_UTF8 = "the form is not encoded as UTF-8 with percent signs"


def message(fields: dict[str, str] | bytes, *authorization: str, **more: Any) -> Message:
    body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    return Message(**{"content_type": FORM, "body": body, "authorization": authorization, **more})


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def refused(sent: Message) -> tuple[str, str]:
    with pytest.raises(TokenRefused) as raised:
        read(sent)
    return raised.value.error, str(raised.value)


def malformed(sent: Message) -> str:
    error, words = refused(sent)
    assert error == "invalid_request"
    return words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (BODY + b"&audience=aud", "a parameter is given more than once"),
        (BODY + b"&x=%", NO_UTF8),
        (BODY + b"&x=%FF", NO_UTF8),
        (BODY + b"&x=%01", "a parameter holds a control character"),
        (BODY + b"&x=%1F", "a parameter holds a control character"),
        (BODY + b"&x=%7F", "a parameter holds a control character"),
        (BODY + b"&scope=a%22b", "scope holds a character that no scope has"),
        (BODY + b"&x=" * 17, "a token request has at most 20 parameters"),
        (b"", "missing: grant_type, audience, client_id, client_secret"),
    ],
)
def test_a_form_is_refused_with_what_is_wrong(body: bytes, words: str) -> None:
    assert malformed(message(body)) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "the body must be a JSON object"),
        ({**GOOD, "audience": ["aud"]}, "every parameter must be a string"),
        ({**GOOD, "audience": "a\x7f"}, "a parameter holds a control character"),
        ({str(n): "" for n in range(21)}, "a token request has at most 20 parameters"),
    ],
)
def test_json_is_refused_with_what_is_wrong(value: object, words: str) -> None:
    assert malformed(message(json.dumps(value).encode(), content_type=JSON)) == words


def test_json_has_20_parameters_at_most() -> None:
    body = json.dumps({**GOOD, **{str(number): number for number in range(16)}}).encode()

    assert read(message(body, content_type=JSON)).audience == "aud"


@pytest.mark.parametrize(
    ("content_type", "words"),
    [
        ("text/plain", f"the Content-Type must be {FORM} or {JSON}"),
        (f"{FORM}; charset=latin-1", "the character set must be UTF-8"),
        (f'{JSON}; boundary=x ; Charset = "utf-16"', "the character set must be UTF-8"),
        (f"{FORM}; charset=utf-8=x", "the character set must be UTF-8"),
        (f"{FORM}; charset", "the character set must be UTF-8"),
    ],
)
def test_another_content_type_is_refused_with_those_that_are_read(
    content_type: str, words: str
) -> None:
    assert malformed(message(BODY, content_type=content_type)) == words


@pytest.mark.parametrize(
    "parameters", ["; boundary=latin-1", ";charset=UTF8", '; x ; Charset = "utf-8" ']
)
def test_other_parameters_of_the_content_type_are_ignored(parameters: str) -> None:
    assert read(message(BODY, content_type=FORM + parameters)).audience == "aud"


def test_a_form_as_json_and_json_as_a_form_are_refused_with_the_right_content_type() -> None:
    assert malformed(message(b" \n{}")) == f"the body is JSON, whose Content-Type is {JSON}"
    assert malformed(message(b"token=x", content_type=JSON)) == (
        f"the body is a form, whose Content-Type is {FORM}"
    )


def test_a_body_of_8193_bytes_is_too_large_in_words() -> None:
    body = BODY + b"&x=" + b"x" * (8_192 - len(BODY) - 3)
    read(message(body))

    with pytest.raises(TooLarge) as refused:
        read(message(body + b"x"))

    assert str(refused.value) == "a token request has at most 8192 bytes"
    (issue,) = refused.value.issues
    assert (issue.details, issue.code) == (ContentProblem.BODY_TOO_LARGE, "too-costly")


def test_a_parameter_in_the_address_is_found_before_a_body_that_is_too_large() -> None:
    words = malformed(message(b"x" * 9_000, query="a=b&client_secret=x"))

    assert words == "parameters must be in the body, never in the address"


@pytest.mark.parametrize(
    "name",
    [
        "audience",
        "client_assertion",
        "client_assertion_type",
        "client_id",
        "client_secret",
        "grant_type",
        "scope",
        "token",
        "token_type_hint",
    ],
)
def test_none_of_the_parameters_may_be_in_the_address(name: str) -> None:
    assert malformed(message(BODY, query=f"x=1&{name}=y=z")).startswith("parameters must be in")


@pytest.mark.parametrize("query", ["a+b=1", "x=client_id", "Client_id=1", "client+id=1", ""])
def test_other_names_in_the_address_are_ignored(query: str) -> None:
    assert read(message(BODY, query=query)).audience == "aud"


def test_another_grant_is_refused_with_the_one_there_is() -> None:
    assert refused(message({**GOOD, "grant_type": "password"})) == (
        "unsupported_grant_type",
        "grant_type must be client_credentials",
    )


def test_each_scope_is_read_once_between_blanks() -> None:
    assert read(message({**GOOD, "scope": " a  b "})).scopes == ("a", "b")


def test_a_tab_is_no_blank_between_scopes() -> None:
    assert malformed(message({**GOOD, "scope": "a\tb"})) == "a parameter holds a control character"


@pytest.mark.parametrize("space", ["\xa0", "\x85", "\u2028"])
def test_other_white_space_is_no_blank_between_scopes(space: str) -> None:
    words = malformed(message({**GOOD, "scope": f"a{space}b"}))

    assert words == "scope holds a character that no scope has"


def test_blanks_and_plus_signs_are_read_as_forms_write_them() -> None:
    body = b"grant_type=client_credentials&client_id=a+b&client_secret=%2B=+&audience=aud"

    assert read(message(body)).credentials == Credentials(client_id="a b", client_secret="+= ")


def test_a_secret_in_a_form_is_no_basic() -> None:
    assert read(message(GOOD)).credentials == Credentials(client_id="me", client_secret="s3cret")


@pytest.mark.parametrize(
    ("fields", "authorization", "words"),
    [
        ({"client_secret": "x"}, [basic("me:x")], ONE_WAY),
        ({}, [basic("me:x")] * 2, ONE_WAY),
        (
            {"client_id": "other"},
            [basic("me:x")],
            "client_id differs from that of the Authorization header",
        ),
        ({**ASSERTED, "client_secret": "x"}, [], ONE_WAY),
        ({**ASSERTED}, [basic("me:x")], ONE_WAY),
        (
            {**ASSERTED, "client_assertion_type": "x"},
            [],
            f"client_assertion_type must be {TYPE}",
        ),
        (
            {**ASSERTED, "client_id": "other"},
            [],
            "client_id differs from that of the client_assertion",
        ),
        ({"client_assertion": "x"}, [], "missing: client_assertion_type"),
        ({"client_assertion_type": TYPE}, [], "missing: client_assertion"),
    ],
)
def test_another_proof_is_refused_with_what_is_wrong(
    fields: dict[str, str], authorization: Sequence[str], words: str
) -> None:
    sent = {"grant_type": "client_credentials", "audience": "aud", **fields}

    assert malformed(message(sent, *authorization)) == words


def test_a_client_with_an_assertion_is_asked_for_the_grant_alone() -> None:
    assert malformed(message(ASSERTED)) == "missing: grant_type"


def test_an_assertion_that_is_none_is_refused_with_the_reason() -> None:
    sent = {"grant_type": "client_credentials", **ASSERTED, "client_assertion": "x"}

    error, words = refused(message(sent))

    assert error == "invalid_client"
    assert words.startswith("the client_assertion must be a signed JWT")


def test_a_token_that_comes_along_is_ignored_and_another_header_is_not() -> None:
    sent = {"grant_type": "client_credentials", **ASSERTED}
    assert isinstance(read(message(sent, "BEARER x")).credentials, OpenedAssertion)

    assert malformed(message(sent, "Bearerx")) == ONE_WAY


def test_a_token_alone_is_no_credentials() -> None:
    sent = {"grant_type": "client_credentials", "audience": "aud"}

    assert refused(message(sent, "Bearer x")) == (
        "invalid_client",
        "client authentication failed",
    )


@pytest.mark.parametrize("text", ["m\x7fe:x", "me:\x1f", "me:%00", "me", ":x", "me:"])
def test_basic_without_an_id_and_a_secret_proves_nothing(text: str) -> None:
    sent = {"grant_type": "client_credentials", "audience": "aud"}

    assert refused(message(sent, basic(text)))[0] == "invalid_client"


def test_the_secret_of_basic_may_hold_colons() -> None:
    sent = {"grant_type": "client_credentials", "audience": "aud"}

    assert read(message(sent, basic("me:a:b"))).credentials == Credentials(
        client_id="me", client_secret="a:b", basic=True
    )


def test_several_blanks_after_basic_are_one() -> None:
    sent = {"grant_type": "client_credentials", "audience": "aud"}

    proof = read(message(sent, basic("me:x").replace(" ", "   "))).credentials

    assert isinstance(proof, Credentials)


def test_an_empty_parameter_counts_as_left_out() -> None:
    assert fields_of(message(b"a=&b=1&c")) == {"b": "1"}


def test_what_is_not_known_is_left_out_of_json() -> None:
    body = json.dumps({"scope": None, "token": "t", "x": [1]}).encode()

    assert fields_of(message(body, content_type=JSON)) == {"token": "t"}


def test_a_refusal_of_credentials_has_one_text_and_the_challenge_if_asked() -> None:
    for is_basic in (True, False):
        refusal = refuse_credentials(basic=is_basic, client="me")

        assert (refusal.error, str(refusal)) == ("invalid_client", "client authentication failed")
        assert (refusal.challenge, refusal.client) == (is_basic, "me")


def test_a_refusal_of_an_assertion_names_its_client_for_the_log() -> None:
    refusal = refuse_assertion("has expired", client="me")

    assert (refusal.error, str(refusal)) == ("invalid_client", "the client_assertion has expired")
    assert (refusal.challenge, refusal.client) == (False, "me")
