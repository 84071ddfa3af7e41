"""POST /console/links: one-time links, for those who have a private key and a browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fhirpub.audit.record import Agent
from fhirpub.auth.statements import VALID_SECONDS
from fhirpub.auth.token_request import read_assertion
from fhirpub.console.console import Console
from fhirpub.console.entrance import record
from fhirpub.console.sessions import Person
from fhirpub.console.visit import BASE
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Client
from fhirpub.web.handlers.token import OAuthHandler, write_oauth

LINKS = f"{BASE}/links"
OPERATORS_LINKS = f"{LINKS}/operators"
_log = logger()


class ClientLinkHandler(OAuthHandler):
    """Make a link for a client that signs an assertion; its secret gets none."""

    action = "console.link"
    _client: Client | None = None

    def __init__(self, console: Console, *arguments: Any) -> None:
        self.console = console
        super().__init__(*arguments)

    @property
    def acting(self) -> tuple[str, str] | None:
        """The tenant and the client that get a link."""
        return (self._client.tenant, self._client.id) if self._client else None

    async def post(self) -> None:
        """Make a link."""
        opened = read_assertion(self.take_message())
        audiences = (f"{self.console.base_url}{LINKS}",)
        client = await self.services.tokens.clients.prove(
            opened, self.address, audiences=audiences
        )
        self._client = client
        person = Person(subject=client.id, name=client.name or client.id, kid=opened.kid)
        _log.info("link made", client=client.id, tenant=client.tenant, request_id=self.request_id)
        write_oauth(self, await _link(self.console, person))


class OperatorLinkHandler(OAuthHandler):
    """Make a link for a caller of administration that signs an assertion."""

    action = "console.link"

    def __init__(self, console: Console, *arguments: Any) -> None:
        self.console = console
        super().__init__(*arguments)

    async def post(self) -> None:
        """Make a link."""
        message = self.take_message()
        opened = read_assertion(message)
        audiences = (f"{self.console.base_url}{OPERATORS_LINKS}",)
        async with self.console.throttle.attempt(opened.subject, self.address):
            name = await self.console.interface.callers.prove(opened, audiences)
        agent = Agent(
            user=name,
            environment=self.services.config.auth.environment,
            address=self.address,
            request=self.request_id,
        )
        await record(self.services, self.action, agent, None)
        _log.info("link made", operator=name, request_id=self.request_id)
        person = Person(subject=name, name=name, is_operator=True, kid=opened.kid)
        write_oauth(self, await _link(self.console, person))


async def _link(console: Console, person: Person) -> dict[str, Any]:
    code = await console.sessions.sign_once("sign-in", person)
    url = f"{console.base_url}{BASE}/sign-in/link?{urlencode({'code': code})}"
    return {"url": url, "expires_in": VALID_SECONDS["sign-in"]}
