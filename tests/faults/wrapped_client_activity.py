"""The part of a wrapped store that records what clients did: a test overrides what it seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.client_activity_contract import (
    AssertionUse,
    ClientActivity,
    RevokedToken,
    UsedAssertion,
)
from fhirpub.storage.store import Store


class ClientActivityWrapper(ClientActivity):
    """Hands every call on to another store."""

    inner: Store

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        return await self.inner.revoke_token(token, most=most)

    async def revoked_tokens(self, client_id: str) -> Sequence[RevokedToken]:
        return await self.inner.revoked_tokens(client_id)

    async def sweep_revoked_tokens(self, *, before: int) -> int:
        return await self.inner.sweep_revoked_tokens(before=before)

    async def use_assertion(self, used: UsedAssertion, *, now: int, most: int) -> AssertionUse:
        return await self.inner.use_assertion(used, now=now, most=most)

    async def sweep_used_assertions(self, *, before: int) -> int:
        return await self.inner.sweep_used_assertions(before=before)

    async def used_assertions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1_000
    ) -> Sequence[UsedAssertion]:
        return await self.inner.used_assertions(after=after, limit=limit)

    async def put_used_assertions(self, used: Collection[UsedAssertion]) -> None:
        await self.inner.put_used_assertions(used)

    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        await self.inner.put_client_uses(uses)

    async def client_uses(self) -> Mapping[str, int]:
        return await self.inner.client_uses()
