"""A site that publishes key sets, and how often it was asked for them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fhirpub.auth.assertions.published_keys import PublishedKeys
from tests.unit.auth.assertions.signing import key_set, pair

URL = "https://ward.example.org/jwks.json"
ONE = key_set(pair("ES384", "a"))


@dataclass
class Answer:
    body: bytes = ONE
    cache_control: str = ""
    problem: str = ""


class Site:
    """What is published, and how often it was asked for."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.asked: list[tuple[str, str]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def fetch(self, url: str, tenant: str) -> Answer:
        self.asked.append((url, tenant))
        await self.open.wait()
        return self.answer


async def kids(keys: PublishedKeys, kid: str = "a", *, tenant: str = "t", url: str = URL) -> str:
    return "".join(key.kid for key in await keys.at(url, tenant=tenant, kid=kid))
