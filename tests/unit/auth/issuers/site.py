"""What issuers publish, and how often they are asked for it."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from fhirpub.webhooks.transport.response import Retrieved


class Silence:
    """A site that never answers; it notes when it is asked, and when the fetch ends."""

    def __init__(self) -> None:
        self.asked, self.ended = asyncio.Event(), asyncio.Event()

    async def fetch(self, _url: str, _tenant: str) -> Any:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


class Site:
    """The documents of issuers by their URLs."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.problem = ""
        self.open = asyncio.Event()
        self.open.set()

    def publish(self, issuer: str, keys: bytes, **changes: Any) -> None:
        document = {"issuer": issuer, "jwks_uri": f"{issuer}/keys", **changes}
        self.documents[f"{issuer}/.well-known/openid-configuration"] = orjson.dumps(document)
        self.documents[f"{issuer}/keys"] = keys

    async def fetch(self, url: str, tenant: str) -> Retrieved:
        self.asked.append((url, tenant))
        await self.open.wait()
        if self.problem or url not in self.documents:
            return Retrieved(problem=self.problem or "status 404")
        return Retrieved(body=self.documents[url])
