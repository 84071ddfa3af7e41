"""Sessions of persons on a store in a file, and visits of those who sign in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import Config
from fhirpub.console.entrance import Attempt, SignInRefused
from fhirpub.console.sessions import Person, Sessions
from fhirpub.console.visit import Visit
from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock

ADDRESS = "192.0.2.7"
KEY_HASH = hashlib.sha256(b"k").hexdigest()


@dataclass
class World:
    """Sessions, and a person whose client exists."""

    config: Config
    store: Store
    sessions: Sessions
    clock: HandClock
    person: Person

    def another_process(self) -> Sessions:
        """Return sessions of a process that has read nothing yet."""
        return sessions_of(self.config, self.store, self.clock)


def sessions_of(config: Config, store: Store, clock: HandClock) -> Sessions:
    tokens = Tokens(
        access=store,
        config=config.auth,
        limits=config.limits,
        issuer="https://fhir.example.org",
        clock=clock,
    )
    return Sessions(config, tokens, store, clock=clock)


def configured(world: World, **parts: Any) -> World:
    config = replace(world.config, **parts)
    sessions = sessions_of(config, world.store, world.clock)
    return replace(world, config=config, sessions=sessions)


@dataclass
class Door:
    """The world of sessions, and a visit that has none yet."""

    world: World
    audit: Any
    visit: Visit

    def attempt(self, person: Person | None = None) -> Attempt:
        async def prove() -> Person:
            return person or self.world.person

        return Attempt("a test", prove)

    def refused(self, client: str = "") -> Attempt:
        async def prove() -> Person:
            raise SignInRefused("a wrong passkey", client=client)

        return Attempt("a test", prove)

    async def records(self, tenant: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.audit.settled(tenant)
        return found

    async def tenant(self) -> str:
        client = await self.world.store.client(self.world.person.subject)
        assert client is not None
        return client.tenant
