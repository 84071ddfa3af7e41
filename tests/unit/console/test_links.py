"""Who gets a one-time link, for what an assertion must be, and what is noted of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs
from tornado.httputil import HTTPHeaders

from fhirpub.auth.assertions.verification import OpenedAssertion
from fhirpub.config.settings import Config
from fhirpub.console import links
from fhirpub.console.links import ClientLinkHandler, OperatorLinkHandler
from fhirpub.errors import Throttled, TokenRefused

BASE = "https://console.example.org"
OPENED = SimpleNamespace(subject="ana", kid="k-1")


class Sessions:
    """Signs statements that name their kind and person."""

    def __init__(self) -> None:
        self.signed: list[tuple[str, Any]] = []

    async def sign_once(self, kind: str, person: Any) -> str:
        self.signed.append((kind, person))
        return "a code&x"


class Desk:
    """What both handlers work with, and what they write and record."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions = Sessions()
        self.proved: list[tuple[Any, ...]] = []
        self.attempts: list[tuple[str, str]] = []
        self.answers: list[Any] = []
        self.records: list[Any] = []
        self.client = SimpleNamespace(id="c-1", name="Ward", tenant="t-1")
        self.is_throttled = False

        async def record(_services: Any, action: str, agent: Any, caller: Any) -> None:
            self.records.append((action, agent, caller))

        monkeypatch.setattr(links, "read_assertion", lambda _message: OPENED)
        monkeypatch.setattr(links, "write_oauth", lambda _handler, body: self.answers.append(body))
        monkeypatch.setattr(links, "record", record)

    async def _client(self, opened: Any, address: str, *, audiences: tuple[str, ...]) -> Any:
        self.proved.append((opened, address, audiences))
        return self.client

    async def _caller(self, opened: OpenedAssertion, audiences: tuple[str, ...]) -> str:
        self.proved.append((opened, audiences))
        return "ana"

    @asynccontextmanager
    async def _attempt(self, name: str, address: str) -> Any:
        self.attempts.append((name, address))
        if self.is_throttled:
            raise Throttled(retry_after=9)
        yield

    def handler(self, kind: type[Any]) -> Any:
        at_address: Any = type("At", (kind,), {"address": "192.0.2.7"})
        handler = at_address.__new__(at_address)
        handler.console = SimpleNamespace(
            base_url=BASE,
            sessions=self.sessions,
            throttle=SimpleNamespace(attempt=self._attempt),
            interface=SimpleNamespace(callers=SimpleNamespace(prove=self._caller)),
        )
        clients = SimpleNamespace(prove=self._client)
        handler.services = SimpleNamespace(
            tokens=SimpleNamespace(clients=clients), config=Config()
        )
        handler.request_id = "r-1"
        handler.request = SimpleNamespace(headers=HTTPHeaders(), query="")
        handler.take_message = lambda: None
        return handler


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def test_a_client_gets_a_link_for_its_person(desk: Desk) -> None:
    handler: Any = desk.handler(ClientLinkHandler)
    before = handler.acting

    await handler.post()

    ((kind, person),) = desk.sessions.signed
    assert (kind, person.subject, person.name, person.kid) == ("sign-in", "c-1", "Ward", "k-1")
    assert not person.is_operator
    assert (before, handler.acting) == (None, ("t-1", "c-1"))
    url = f"{BASE}/console/sign-in/link?code=a+code%26x"
    assert desk.answers == [{"url": url, "expires_in": 120}]


async def test_a_client_without_a_name_is_called_by_its_id(desk: Desk) -> None:
    desk.client.name = ""

    await desk.handler(ClientLinkHandler).post()

    assert desk.sessions.signed[0][1].name == "c-1"


async def test_an_assertion_of_a_client_is_for_its_links_alone(desk: Desk) -> None:
    await desk.handler(ClientLinkHandler).post()

    assert desk.proved == [(OPENED, "192.0.2.7", (f"{BASE}/console/links",))]


async def test_an_operator_gets_a_link_and_is_recorded_for_the_service(desk: Desk) -> None:
    await desk.handler(OperatorLinkHandler).post()

    ((kind, person),) = desk.sessions.signed
    assert (kind, person.subject, person.name, person.kid) == ("sign-in", "ana", "ana", "k-1")
    assert person.is_operator is True
    ((action, agent, caller),) = desk.records
    assert (action, caller) == ("console.link", None)
    assert (agent.user, agent.client, agent.address) == ("ana", "", "192.0.2.7")
    assert (agent.request, agent.environment) == ("r-1", Config().auth.environment)


async def test_an_assertion_of_an_operator_is_for_their_links_alone(desk: Desk) -> None:
    await desk.handler(OperatorLinkHandler).post()

    assert desk.proved == [(OPENED, (f"{BASE}/console/links/operators",))]
    assert desk.attempts == [("ana", "192.0.2.7")]


async def test_too_many_wrong_assertions_are_proved_no_more(desk: Desk) -> None:
    desk.is_throttled = True

    with pytest.raises(Throttled):
        await desk.handler(OperatorLinkHandler).post()

    assert (desk.proved, desk.sessions.signed, desk.records) == ([], [], [])


async def test_who_is_not_proved_gets_no_link_and_is_no_acting_client(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_given: Any, **_named: Any) -> Any:
        raise TokenRefused("invalid_client", "no")

    for kind, prove in ((ClientLinkHandler, "_client"), (OperatorLinkHandler, "_caller")):
        monkeypatch.setattr(desk, prove, refuse)
        handler = desk.handler(kind)
        with pytest.raises(TokenRefused):
            await handler.post()
        assert handler.acting is None

    assert (desk.sessions.signed, desk.records, desk.answers) == ([], [], [])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ClientLinkHandler, {"client": "c-1", "tenant": "t-1"}),
        (OperatorLinkHandler, {"operator": "ana"}),
    ],
)
async def test_a_link_is_logged_without_its_code(
    desk: Desk, kind: type[Any], expected: dict[str, str]
) -> None:
    with capture_logs() as lines:
        await desk.handler(kind).post()

    (line,) = [one for one in lines if one["event"] == "link made"]
    assert {name: line[name] for name in expected} == expected
    assert line["request_id"] == "r-1"
    assert "a code" not in str(line)


@pytest.mark.parametrize("kind", [ClientLinkHandler, OperatorLinkHandler])
def test_a_request_for_a_link_needs_no_token_and_has_its_action(kind: Any) -> None:
    assert (kind.action, kind.requires_token) == ("console.link", False)
