"""With which token a publisher sends, and when it gets another one."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs

import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish.publisher import NoToken, Publisher, Registration
from fhirpub.cli.publish.retries import Unreachable
from tests.canned import BASE, response


class Service:
    """Gives a new token at each request for one, and refuses those that are revoked."""

    def __init__(self, *refusals: HTTPResponse) -> None:
        self.calls: list[Call] = []
        self.granted = 0
        self.revoked: set[str] = set()
        self.refusals = list(refusals)
        grant = {"client_id": "id", "client_secret": "s", "audience": "a"}
        self.publisher = Publisher(self.send, BASE, grant, lambda _note: None, lambda: ())

    async def send(self, call: Call) -> HTTPResponse:
        await asyncio.sleep(0)
        self.calls.append(call)
        if call.url == f"{BASE}/oauth/token":
            if self.refusals:
                return self.refusals.pop(0)
            self.granted += 1
            return response(200, {"access_token": f"t-{self.granted}"})
        token = call.headers["Authorization"].removeprefix("Bearer ")
        return response(401 if token in self.revoked else 200)

    def tokens(self) -> list[str]:
        sent = [call.headers.get("Authorization", "token") for call in self.calls]
        return [each.removeprefix("Bearer ") for each in sent]


async def test_a_token_is_asked_for_with_the_credentials_and_the_audience() -> None:
    service = Service()

    await service.publisher.request("GET", "/x")

    form = service.calls[0]
    assert (form.method, form.url) == ("POST", f"{BASE}/oauth/token")
    assert parse_qs((form.body or b"").decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["id"],
        "client_secret": ["s"],
        "audience": ["a"],
    }


async def test_one_token_serves_all_requests() -> None:
    service = Service()

    await asyncio.gather(*(service.publisher.request("GET", "/x") for _ in range(3)))
    await service.publisher.request("GET", "/x")

    assert service.tokens() == ["token", "t-1", "t-1", "t-1", "t-1"]


async def test_a_token_that_has_expired_is_replaced_once_for_all() -> None:
    service = Service()
    await service.publisher.request("GET", "/x")
    service.revoked = {"t-1"}

    found = await asyncio.gather(*(service.publisher.request("GET", "/x") for _ in range(3)))

    assert [(each.response.code, each.attempts) for each in found] == [(200, 2)] * 3
    assert service.granted == 2


async def test_a_new_token_that_is_refused_is_not_replaced() -> None:
    service = Service()
    service.revoked = {"t-1"}

    found = await service.publisher.request("GET", "/x")

    assert (found.response.code, found.attempts, service.granted) == (401, 1, 1)


async def test_a_second_refusal_is_the_answer() -> None:
    service = Service()
    await service.publisher.request("GET", "/x")
    service.revoked = {"t-1", "t-2"}

    found = await service.publisher.request("GET", "/x")

    assert (found.response.code, service.granted) == (401, 2)


async def test_a_registration_is_sent_as_json_of_fhir() -> None:
    service = Service()

    await service.publisher.register(Registration("Patient", b"{}"))

    sent = service.calls[1]
    assert (sent.method, sent.url) == ("POST", f"{BASE}/fhir/r4/Patient/$register")
    assert sent.headers["Content-Type"] == sent.headers["Accept"] == "application/fhir+json"
    assert sent.body == b"{}"


async def test_a_request_without_a_body_has_no_type_and_keeps_its_headers() -> None:
    service = Service()

    await service.publisher.request("GET", "/x", headers={"Accept": "a/b", "If-Match": "1"})

    headers = service.calls[1].headers
    assert (headers["Accept"], headers["If-Match"]) == ("a/b", "1")
    assert "Content-Type" not in headers


REFUSED = {"error": "invalid_client", "error_description": "unknown client"}


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            response(401, REFUSED),
            (
                "no token: 401 invalid_client: unknown client\nAre FHIRPUB_CLIENT_ID and "
                "FHIRPUB_CLIENT_SECRET those of this service and environment?"
            ),
        ),
        (
            response(400, {"error": "invalid_request"}),
            "no token: 400 invalid_request\nIs --audience right? The operator knows it.",
        ),
        (
            response(429, REFUSED, Retry_After="90"),
            (
                "no token: 429 invalid_client: unknown client\nWait, and check the credentials "
                "before you try again."
            ),
        ),
        (
            response(404, {"detail": "x"}),
            f"{BASE} is not a service of this kind: no token, but 404 Not Found. Is --url right?",
        ),
        (
            response(302, Location="https://b.example\n"),
            (
                f"{BASE} redirects to https://b.example\ufffd (302 Found). Is that the address "
                "for --url?"
            ),
        ),
        (
            response(308, Location="https://b.example"),
            (
                f"{BASE} redirects to https://b.example (308 Permanent Redirect). Is that the "
                "address for --url?"
            ),
        ),
        (
            response(200, {"access_token": 7}),
            f"{BASE} is not a service of this kind: no token, but 200 OK. Is --url right?",
        ),
        (
            response(404, {"access_token": "t-0"}),
            f"{BASE} is not a service of this kind: no token, but 404 Not Found. Is --url right?",
        ),
    ],
)
async def test_why_there_is_no_token_is_explained(refusal: HTTPResponse, text: str) -> None:
    service = Service(refusal)

    with pytest.raises(NoToken) as refused:
        await service.publisher.request("GET", "/x")

    assert str(refused.value) == text
    assert len(service.calls) == 1


async def test_after_a_failure_a_token_is_asked_for_again() -> None:
    service = Service(response(401, REFUSED))
    with pytest.raises(NoToken):
        await service.publisher.request("GET", "/x")

    found = await service.publisher.request("GET", "/x")

    assert json.loads(found.response.body) == {}
    assert service.granted == 1


async def test_a_token_that_could_not_be_replaced_is_not_sent_again() -> None:
    service = Service()
    await service.publisher.request("GET", "/x")
    service.revoked, service.refusals = {"t-1"}, [response(401, REFUSED)]
    with pytest.raises(NoToken):
        await service.publisher.request("GET", "/x")

    await service.publisher.request("GET", "/x")

    assert service.tokens() == ["token", "t-1", "t-1", "token", "token", "t-2"]


@pytest.mark.parametrize("is_token", [True, False])
async def test_a_publisher_makes_the_pauses_that_it_is_given(*, is_token: bool) -> None:
    asked: list[str] = []
    notes: list[str] = []

    async def busy(call: Call) -> HTTPResponse:
        asked.append(call.url.removeprefix(BASE))
        if call.url.endswith("/oauth/token") and not is_token:
            return response(200, {"access_token": "t"})
        return response(503, reason="Busy")

    publisher = Publisher(busy, BASE, {}, notes.append, lambda: [0.0, 0.0])

    with pytest.raises(Unreachable, match=r"^the service returned 503 Busy\nGave up"):
        await publisher.request("GET", "/x")

    assert asked == (["/oauth/token"] * 3 if is_token else ["/oauth/token", *["/x"] * 3])
    assert notes == ["the service returned 503 Busy; sending the same request again in 0 s"]
