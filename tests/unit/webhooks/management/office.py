"""A real store of endpoints, and a receiver whose answer is known."""

from __future__ import annotations

import json
from typing import Any

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB
from fhirpub.webhooks.management.endpoints import EndpointService
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender

URL = "https://93.184.215.14/hook"
PULL = "pull:laptop"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OLD = b"o" * 32
SEAL = SecretCipher([OLD])
SETTINGS = WebhooksConfig(endpoints_per_tenant=2)
ACCEPTED, FAILED = Outcome(status=204), Outcome(status=503)


class Answering(Sender):
    """A sender whose receiver gives one outcome; None repeats the challenge."""

    def __init__(self) -> None:
        super().__init__(SETTINGS, clock=HandClock())
        self.sent: list[Message] = []
        self.outcome: Outcome | None = ACCEPTED

    async def attempt(self, message: Message) -> Outcome:
        self.sent.append(message)
        if self.outcome:
            return self.outcome
        challenge: str = json.loads(message.body)["data"]["challenge"]
        return Outcome(status=200, answer=challenge.encode())


class Office:
    """Endpoints over a real store, and a receiver whose answer is known."""

    def __init__(self, store: SqliteStore) -> None:
        self.store, self.clock = store, HandClock()
        self.sender = Answering()
        self.service = self.with_seal(SEAL)

    def with_seal(self, seal: SecretCipher) -> EndpointService:
        return EndpointService(
            store=self.store,
            sender=self.sender,
            seal=seal,
            event_types=EventTypes.of([]),
            config=Config(webhooks=SETTINGS),
            clock=self.clock,
        )

    async def add(self, url: str = URL, *, trusted: bool = True, **fields: Any) -> Endpoint:
        added = await self.service.add(LAB, {"url": url, **fields}, trusted=trusted)
        return added.endpoint

    async def stored(self, endpoint: Endpoint) -> Endpoint:
        found = await self.store.endpoint(LAB, endpoint.id)
        assert found is not None
        return found

    @property
    def sent(self) -> list[str]:
        return [message.event_type for message in self.sender.sent]
