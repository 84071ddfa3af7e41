from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.auth import token_request
from fhirpub.auth.assertions.verification import TYPE, OpenedAssertion
from fhirpub.auth.token_request import Credentials, Message, TokenRequest
from fhirpub.errors import TokenRefused, TooLarge
from tests.unit.auth.assertions.signing import CLIENT_ID, claims, pair
from tests.unit.auth.conftest import FORM

JSON = "application/json"
ASSERTED = b"grant_type=client_credentials"
TYPED = urlencode({"client_assertion_type": TYPE}).encode()
GOOD = {
    "grant_type": "client_credentials",
    "client_id": "me",
    "client_secret": "s3cret",
    "audience": "aud",
}
BODY = urlencode(GOOD).encode()
BARE = urlencode({"grant_type": "client_credentials", "audience": "aud"}).encode()
DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+")


def read(**sent: Any) -> TokenRequest:
    return token_request.read(Message(**sent))


def basic(text: str, scheme: str = "Basic") -> list[str]:
    return [f"{scheme} {base64.b64encode(text.encode()).decode()}"]


def without(name: str) -> bytes:
    return urlencode({key: value for key, value in GOOD.items() if key != name}).encode()


def refused(
    body: bytes,
    content_type: str = FORM,
    authorization: list[str] | None = None,
    query: str = "",
) -> TokenRefused:
    with pytest.raises(TokenRefused) as raised:
        read(content_type=content_type, body=body, authorization=authorization or [], query=query)
    assert DESCRIPTION.fullmatch(str(raised.value))
    assert "s3cret" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (FORM, BODY),
        ("Application/X-WWW-Form-URLencoded; charset=UTF-8", BODY),
        (FORM + ';charset="utf-8"', BODY + b"&"),
        (FORM, BODY + b"&unknown=ignored&scope="),
        (
            JSON,
            json.dumps(GOOD).encode(),
        ),
        (
            JSON + "; charset=utf-8",
            json.dumps({"extra": "x", **GOOD}, indent=1).encode(),
        ),
        (JSON, json.dumps({"scope": None, **GOOD}).encode()),
        (JSON, json.dumps({"extra": [1], **GOOD}).encode()),
    ],
)
def test_forms_and_json_mean_the_same(content_type: str, body: bytes) -> None:
    request = read(content_type=content_type, body=body)

    assert request.credentials == Credentials(client_id="me", client_secret="s3cret")
    assert (request.audience, request.scopes) == ("aud", ())
    assert "s3cret" not in repr(request)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_http_basic_carries_id_and_secret_form_encoded(scheme: str) -> None:
    header = basic(f"{quote_plus('m e:ñ')}:{quote_plus('s+/%')}", scheme)

    request = read(content_type=FORM, body=BARE, authorization=header)

    sent = Credentials(client_id="m e:ñ", client_secret="s+/%", basic=True)
    assert request.credentials == sent


def test_http_basic_with_the_same_client_id_in_the_form_is_one_method() -> None:
    request = read(content_type=FORM, body=BARE + b"&client_id=me", authorization=basic("me:x"))

    assert request.credentials == Credentials(client_id="me", client_secret="x", basic=True)


def test_another_grant_is_refused_before_what_it_lacks() -> None:
    assert refused(b"grant_type=password&username=me").error == "unsupported_grant_type"


@pytest.mark.parametrize("grant", [b"password", b"CLIENT_CREDENTIALS"])
def test_another_grant_is_an_unsupported_one(grant: bytes) -> None:
    refusal = refused(without("grant_type") + b"&grant_type=" + grant)

    assert (refusal.error, refusal.challenge) == ("unsupported_grant_type", False)


@pytest.mark.parametrize(
    "body",
    [
        *(without(name) for name in GOOD),
        *(without(name) + f"&{name}=".encode() for name in GOOD),
        BODY + b"&audience=aud",
        BODY + b"&x=1&x=2",
        BODY + b"&x=&x=",
        BODY + b"&%78=1&x=2",
        BODY + b"&client_assertion=x",
        BODY + b"&client_assertion_type=urn",
        ASSERTED,
        ASSERTED + b"&client_assertion=a.b.c&client_assertion_type=urn",
        ASSERTED + b"&client_assertion=a.b.c",
        ASSERTED + b"&" + TYPED + b"&client_secret=x&client_assertion=a.b.c",
        ASSERTED + b"&" + TYPED,
        BODY + b"&" + b"&".join(b"p%d=" % number for number in range(17)),
        BODY + b"&x=%",
        BODY + b"&x=%4",
        BODY + b"&x=%zz",
        BODY + b"&x=%FF",
        BODY + b"&x=\xff",
        BODY + b"&x=%00",
        BODY + b"&x=%0d%0aSet-Cookie:",
        BODY + b"&x=%ED%A0%80",
        BODY + b"&scope=a%22b",
        BODY + b"&scope=%C3%B1",
        b"",
        b"&&&",
        b"\x00",
    ],
)
def test_a_malformed_form_is_an_invalid_request(body: bytes) -> None:
    refusal = refused(body)

    assert (refusal.error, refusal.challenge) == ("invalid_request", False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'"x"',
        b"{",
        b'{"client_id":"me","client_id":"you"}',
        b'{"grant_type":"client_credentials","client_id":1,"client_secret":"s","audience":"a"}',
        b'{"grant_type":"client_credentials","client_id":"m","client_secret":"s","audience":["a"]}',
        b'{"grant_type":"client_credentials","client_id":"m","client_secret":null,"audience":"a"}',
        json.dumps({**GOOD, "client_id": "\ud800"}).encode(),
        json.dumps({**GOOD, "client_id": "a\x00b"}).encode(),
        b'{"a":NaN}',
        b"\xff\xfe{\x00}\x00",
        b"[" * 8000,
        b'{"a":' * 1500,
        b"{" + b",".join(b'"p%d":""' % number for number in range(21)) + b"}",
    ],
)
def test_malformed_json_is_an_invalid_request(body: bytes) -> None:
    assert refused(body, JSON).error == "invalid_request"


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/xml",
        FORM + "x",
        FORM + "; charset=latin-1",
        "application/json; charset=utf-16",
        ";",
        ",",
    ],
)
def test_another_content_type_is_an_invalid_request(content_type: str) -> None:
    assert refused(BODY, content_type).error == "invalid_request"


@pytest.mark.parametrize("content_type", [FORM, JSON])
def test_more_than_8192_bytes_are_too_large(content_type: str) -> None:
    with pytest.raises(TooLarge):
        read(content_type=content_type, body=BODY + b"&x=" + b"x" * 8192)


def test_8192_bytes_and_20_parameters_are_not_too_many() -> None:
    body = BODY + b"".join(b"&p%d=" % number for number in range(15)) + b"&x="

    read(content_type=FORM, body=body + b"x" * (8192 - len(body)))


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_token_of_before_is_no_way_to_authenticate(scheme: str) -> None:
    request = read(content_type=FORM, body=BODY, authorization=[f"{scheme} a.b.c"])

    assert request.credentials == Credentials(client_id="me", client_secret="s3cret")


@pytest.mark.parametrize(
    ("body", "authorization"),
    [
        (BODY, basic("me:s3cret")),
        (BODY, ["Digest username=me"]),
        (BODY, ["Bearer a.b.c", *basic("me:s3cret")]),
        (BARE + b"&client_secret=s3cret", basic("me:s3cret")),
        (BARE + b"&client_id=other", basic("me:s3cret")),
        (BARE, basic("me:s3cret") * 2),
    ],
)
def test_two_ways_to_authenticate_are_an_invalid_request(
    body: bytes, authorization: list[str]
) -> None:
    assert refused(body, authorization=authorization).error == "invalid_request"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic ***",
        "Basic bWU",
        "Basic bWU6czNjcmV0 x",
        "Bearer a.b.c",
        "Digest username=me",
        basic("me")[0],
        basic(":s3cret")[0],
        basic("me:")[0],
        basic("me:%zz")[0],
        basic("me:%FF")[0],
        basic("me:a\x00b")[0],
        "Basic " + base64.b64encode(b"me:\xff").decode(),
    ],
)
def test_a_header_that_proves_nothing_is_challenged_for_basic(header: str) -> None:
    refusal = refused(BARE, authorization=[header])

    assert (refusal.error, refusal.challenge) == ("invalid_client", True)


def test_everything_that_is_missing_is_reported_at_once() -> None:
    alone = str(refused(b"client_id=me"))
    with_header = str(refused(b"audience=", authorization=basic("me:s3cret")))

    assert alone == "missing: grant_type, audience, client_secret"
    assert with_header == "missing: grant_type, audience"


def test_the_shape_is_validated_before_the_header() -> None:
    assert refused(b"audience=aud", authorization=["Basic ***"]).error == "invalid_request"
    assert refused(b"grant_type=client_credentials", authorization=["x"]).error == (
        "invalid_request"
    )


@pytest.mark.parametrize(
    "query", ["client_secret=s3cret", "a=b&client_id=me", "%63lient_id=me", "grant_type", "scope="]
)
def test_parameters_in_the_address_are_refused(query: str) -> None:
    assert refused(BODY, query=query).error == "invalid_request"


def test_another_query_is_ignored() -> None:
    read(content_type=FORM, body=BODY, query="trace=1&%FF=%&")


ASSERTION = pair("ES384").sign(claims())


def test_an_assertion_needs_no_client_id_and_no_audience() -> None:
    body = ASSERTED + b"&" + TYPED + f"&client_assertion={ASSERTION}".encode()

    request = read(content_type=FORM, body=body, authorization=["Bearer old-token"])

    assert isinstance(request.credentials, OpenedAssertion)
    assert (request.credentials.subject, request.credentials.kid) == (CLIENT_ID, "k1")
    assert request.audience == ""


@pytest.mark.parametrize(
    ("more", "authorization", "error"),
    [
        ({"client_id": CLIENT_ID}, (), None),
        ({"client_id": "other"}, (), "invalid_request"),
        ({"client_secret": "x"}, (), "invalid_request"),
        ({}, basic("me:x"), "invalid_request"),
        ({"client_assertion_type": f"{TYPE}2"}, (), "invalid_request"),
        ({"client_assertion": "a.b.c"}, (), "invalid_client"),
        ({"client_assertion": ASSERTION + "="}, (), "invalid_client"),
        ({"grant_type": "authorization_code"}, (), "unsupported_grant_type"),
        ({"scope": 'a"b'}, (), "invalid_request"),
    ],
)
def test_an_assertion_is_the_only_proof_and_names_one_client(
    more: dict[str, str], authorization: list[str], error: str | None
) -> None:
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": TYPE,
        "client_assertion": ASSERTION,
        **more,
    }
    body = urlencode(fields).encode()

    if error is None:
        read(content_type=FORM, body=body, authorization=authorization)
        return
    with pytest.raises(TokenRefused) as raised:
        read(content_type=FORM, body=body, authorization=authorization)
    assert raised.value.error == error
    assert DESCRIPTION.fullmatch(str(raised.value))


@given(
    body=st.binary(max_size=300) | st.binary(max_size=40).map(lambda each: BODY + b"&" + each),
    content_type=st.sampled_from([FORM, JSON]) | st.text(max_size=20),
    header=st.none()
    | st.text(max_size=30)
    | st.binary(max_size=30).map(lambda each: "Basic " + base64.b64encode(each).decode()),
)
def test_no_bytes_raise_anything_but_a_refusal(
    body: bytes, content_type: str, header: str | None
) -> None:
    with suppress(TokenRefused):
        read(content_type=content_type, body=body, authorization=[header] if header else [])


@pytest.mark.parametrize(
    ("content_type", "body", "words"),
    [
        (FORM, json.dumps(GOOD).encode(), "the body is JSON, whose Content-Type is"),
        (JSON, BODY, "the body is a form, whose Content-Type is"),
        (JSON, b"", "the body is empty"),
        (JSON, b'{"audience": "aud",}', "there is a comma before } or ]"),
        (JSON, b'{"audience": "aud\t"}', "the body is not valid JSON"),
        (JSON, b'{"audience": "a", "audience": "b"}', "has the same name twice: audience"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_the_reason(
    content_type: str, body: bytes, words: str
) -> None:
    refusal = refused(body, content_type)

    assert refusal.error == "invalid_request"
    assert words in str(refusal)
