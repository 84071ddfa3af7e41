"""The part of the store in MongoDB that records what clients did."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from fhirpub.storage.client_activity_contract import (
    AssertionUse,
    ClientActivity,
    RevokedToken,
    UsedAssertion,
)
from fhirpub.storage.mongodb.collections import OnDatabase
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.schema import BY_ID, CLIENT_USE, REVOKED_TOKEN, USED_ASSERTION


class MongoClientActivity(OnDatabase, ClientActivity):
    """What clients did, in the database."""

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        key = f"{token.client}/{token.jti}"
        known = await self.revoked_tokens(token.client)
        if len(known) >= most and all(item.jti != token.jti for item in known):
            return False
        change = {
            "$setOnInsert": {"client": token.client, "jti": token.jti},
            "$max": {"until": token.until},
        }
        async with within(self._deadline):
            await self._collection(REVOKED_TOKEN).update_one({"_id": key}, change, upsert=True)
        return True

    async def revoked_tokens(self, client_id: str) -> Sequence[RevokedToken]:
        found = await self._list(REVOKED_TOKEN, {"client": client_id})
        tokens = [RevokedToken(d["client"], d["jti"], d["until"]) for d in found]
        return sorted(tokens, key=lambda each: (each.until, each.jti))

    async def sweep_revoked_tokens(self, *, before: int) -> int:
        async with within(self._deadline):
            old = {"until": {"$lt": before}}
            return int((await self._collection(REVOKED_TOKEN).delete_many(old)).deleted_count)

    async def use_assertion(self, used: UsedAssertion, *, now: int, most: int) -> AssertionUse:
        key = _key_of(used)
        async with within(self._deadline):
            assertions = self._collection(USED_ASSERTION)
            live = {"owner": used.owner, "until": {"$gt": now}}
            if await assertions.count_documents(live, limit=most) >= most:
                return AssertionUse.TOO_MANY
            try:
                await assertions.insert_one({"_id": key, **key, "until": used.until})
            except DuplicateKeyError:
                return AssertionUse.REPEATED
        return AssertionUse.FIRST

    async def sweep_used_assertions(self, *, before: int) -> int:
        async with within(self._deadline):
            old = {"until": {"$lt": before}}
            return int((await self._collection(USED_ASSERTION).delete_many(old)).deleted_count)

    async def used_assertions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1_000
    ) -> Sequence[UsedAssertion]:
        owner, jti = after
        behind = {"_id": {"$gt": {"owner": owner, "jti": jti}}}
        in_order = [("_id", 1)]
        found = await self._list(USED_ASSERTION, behind, sort=in_order, limit=limit, hint=BY_ID)
        return [UsedAssertion(d["owner"], d["jti"], d["until"]) for d in found]

    async def put_used_assertions(self, used: Collection[UsedAssertion]) -> None:
        writes = [
            UpdateOne(
                {"_id": _key_of(one)},
                {"$setOnInsert": _key_of(one), "$max": {"until": one.until}},
                upsert=True,
            )
            for one in used
        ]
        if writes:
            async with within(self._deadline):
                await self._collection(USED_ASSERTION).bulk_write(writes, ordered=False)

    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        writes = [
            UpdateOne({"_id": client}, {"$max": {"used": used}}, upsert=True)
            for client, used in uses.items()
        ]
        if writes:
            async with within(self._deadline):
                await self._collection(CLIENT_USE).bulk_write(writes, ordered=False)

    async def client_uses(self) -> Mapping[str, int]:
        return {found["_id"]: found["used"] for found in await self._list(CLIENT_USE, {})}


def _key_of(used: UsedAssertion) -> dict[str, str]:
    """Return the key of an assertion: concurrent uses meet at it, whatever the texts are."""
    return {"owner": used.owner, "jti": used.jti}
