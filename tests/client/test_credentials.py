"""When a client gets another token, by the requests that it would send."""

from __future__ import annotations

import time
from collections.abc import Generator
from urllib.parse import parse_qs

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import import_key

from fhirpub_client import PrivateKey, Refused, Secret
from fhirpub_client.credentials import Deferred, TokenAuth
from tests.unit.auth.assertions.signing import pair

BASE = "https://fhir.example.org"


def sent_by(auth: TokenAuth, *, seconds: int) -> list[str]:
    """Return the paths of what is sent for one request, by a service whose tokens last so long."""
    flow = auth.auth_flow(httpx.Request("GET", f"{BASE}/fhir/r4/metadata"))
    request, paths = next(flow), []
    while True:
        paths.append(request.url.path)
        granted = {"access_token": "t", "expires_in": seconds}
        try:
            request = flow.send(httpx.Response(200, json=granted, request=request))
        except StopIteration:
            return paths


@pytest.mark.parametrize(("seconds", "renewals"), [(30, 1), (3_600, 0)])
def test_a_token_is_renewed_half_a_minute_before_its_end(seconds: int, renewals: int) -> None:
    auth = TokenAuth(Secret("id", "secret"), BASE, scope="")
    assert sent_by(auth, seconds=seconds) == ["/oauth/token", "/fhir/r4/metadata"]

    again = sent_by(auth, seconds=seconds)

    assert again.count("/oauth/token") == renewals


Flow = Generator[httpx.Request, httpx.Response, None]


def flow_of(auth: TokenAuth) -> Flow:
    return auth.auth_flow(httpx.Request("GET", f"{BASE}/fhir/r4/metadata"))


def granted(token: str, **more: int) -> httpx.Response:
    return httpx.Response(200, json={"access_token": token, **more})


@pytest.mark.parametrize(("seconds", "renewals"), [(31, 0), (29, 1)])
def test_a_token_is_used_until_half_a_minute_is_left(seconds: int, renewals: int) -> None:
    auth = TokenAuth(Secret("id", "secret"), BASE, scope="")
    sent_by(auth, seconds=seconds)

    assert sent_by(auth, seconds=seconds).count("/oauth/token") == renewals


def test_a_token_without_a_time_is_used_once() -> None:
    auth = TokenAuth(Secret("id", "secret"), BASE, scope="")
    flow = flow_of(auth)
    next(flow)
    flow.send(granted("first"))

    assert next(flow_of(auth)).url.path == "/oauth/token"


def test_a_request_for_a_token_has_the_fields_of_its_credentials() -> None:
    request = next(flow_of(TokenAuth(Secret("id", "secret"), BASE, scope="a b")))

    assert (request.method, str(request.url)) == ("POST", f"{BASE}/oauth/token")
    assert parse_qs(request.read().decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["id"],
        "client_secret": ["secret"],
        "audience": [f"{BASE}/fhir"],
        "scope": ["a b"],
    }


def test_without_scopes_none_are_named() -> None:
    request = next(flow_of(TokenAuth(Secret("id", "secret"), BASE, scope="")))

    assert b"scope" not in request.read()


def test_an_audience_of_its_own_replaces_that_of_the_address() -> None:
    fields = Secret("id", "secret", "urn:service").fields(f"{BASE}/oauth/token")

    assert fields["audience"] == "urn:service"


def test_a_refused_token_is_replaced_once() -> None:
    flow = flow_of(TokenAuth(Secret("id", "secret"), BASE, scope=""))
    next(flow)
    first = flow.send(granted("old", expires_in=3_600)).headers["Authorization"]
    asked = flow.send(httpx.Response(401))
    second = flow.send(granted("new", expires_in=3_600)).headers["Authorization"]

    with pytest.raises(StopIteration):
        flow.send(httpx.Response(401))
    assert (first, asked.url.path, second) == ("Bearer old", "/oauth/token", "Bearer new")


def test_a_token_that_another_request_has_replaced_is_taken() -> None:
    auth = TokenAuth(Secret("id", "secret"), BASE, scope="")
    slow = flow_of(auth)
    next(slow)
    slow.send(granted("old", expires_in=3_600))
    quick = flow_of(auth)
    next(quick)
    quick.send(httpx.Response(401))
    quick.send(granted("new", expires_in=3_600))

    again = slow.send(httpx.Response(401))

    assert again.url.path == "/fhir/r4/metadata"
    assert again.headers["Authorization"] == "Bearer new"


@pytest.mark.parametrize("status", [403, 404, 500])
def test_other_errors_replace_no_token(status: int) -> None:
    flow = flow_of(TokenAuth(Secret("id", "secret"), BASE, scope=""))
    next(flow)
    flow.send(granted("old", expires_in=3_600))

    with pytest.raises(StopIteration):
        flow.send(httpx.Response(status))


def test_a_refused_request_for_a_token_ends_the_request() -> None:
    flow = flow_of(TokenAuth(Secret("id", "secret"), BASE, scope=""))
    next(flow)

    with pytest.raises(Refused, match="400: invalid_scope"):
        flow.send(httpx.Response(400, json={"error": "invalid_scope"}))


def test_a_deferred_request_for_a_token_keeps_its_response() -> None:
    flow = flow_of(TokenAuth(Secret("id", "secret"), BASE, scope=""))
    next(flow)
    response = httpx.Response(503, headers={"Retry-After": "9"})

    with pytest.raises(Deferred) as deferred:
        flow.send(response)

    assert deferred.value.response is response


@pytest.mark.parametrize("algorithm", ["ES384", "RS384"])
def test_an_assertion_is_signed_by_the_algorithm_of_its_key(algorithm: str) -> None:
    key = pair(algorithm).private.as_dict(private=True) | {"kid": "k-1"}

    fields = PrivateKey("id", key, algorithm).fields(f"{BASE}/oauth/token")

    read = jwt.decode(fields["client_assertion"], import_key(key), algorithms=[algorithm])
    assert read.header["alg"] == algorithm


def test_an_assertion_lasts_five_minutes_and_is_for_the_token_endpoint() -> None:
    signer = pair("ES384")
    key = signer.private.as_dict(private=True) | {"kid": "k-1"}

    fields = PrivateKey("id", key).fields(f"{BASE}/oauth/token")

    read = jwt.decode(fields["client_assertion"], import_key(key), algorithms=["ES384"])
    left = read.claims["exp"] - time.time()  # noqa: TID251 - by the clock of the caller
    assert read.header == {"kid": "k-1", "alg": "ES384", "typ": "JWT"}
    assert read.claims["iss"] == read.claims["sub"] == "id"
    assert read.claims["aud"] == f"{BASE}/oauth/token"
    assert 290 < left <= 300
    assert (
        fields["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    )


def test_no_assertion_is_sent_twice() -> None:
    signer = pair("ES384")
    key = signer.private.as_dict(private=True) | {"kid": "k-1"}
    credentials = PrivateKey("id", key)

    ids = {
        jwt.decode(
            credentials.fields(BASE)["client_assertion"], import_key(key), algorithms=["ES384"]
        ).claims["jti"]
        for _ in range(2)
    }

    assert len(ids) == 2


@pytest.mark.parametrize(
    "credentials", [Secret("id", "hidden"), PrivateKey("id", {"kid": "k-1", "d": "hidden"})]
)
def test_credentials_are_shown_without_what_is_secret(credentials: Secret | PrivateKey) -> None:
    assert repr(credentials) == f"{type(credentials).__name__}('id', ...)"
    assert "hidden" not in str(credentials)


def test_a_request_for_a_token_waits_as_long_as_the_one_that_needs_it() -> None:
    limits = {"connect": 1.0, "read": 2.0, "write": 3.0, "pool": 4.0}
    request = httpx.Request("GET", f"{BASE}/fhir/r4/metadata", extensions={"timeout": limits})

    asked = next(TokenAuth(Secret("id", "secret"), BASE, scope="").auth_flow(request))

    assert asked.url.path == "/oauth/token"
    assert asked.extensions["timeout"] == limits


@pytest.mark.parametrize("base", [BASE, f"{BASE}/oauth/lab", f"{BASE}/oauth/token/x"])
def test_the_usual_audience_is_below_the_address_of_the_service(base: str) -> None:
    fields = Secret("id", "secret").fields(f"{base}/oauth/token")

    assert fields["audience"] == f"{base}/fhir"
