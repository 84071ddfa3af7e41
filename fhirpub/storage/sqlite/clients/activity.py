"""The part of the embedded store that records revoked tokens and the last use of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from fhirpub.storage.client_activity_contract import ClientActivity, RevokedToken
from fhirpub.storage.sqlite.database import DatabaseMixin
from fhirpub.storage.sqlite.tables import client_activity as sql


class SqliteClientActivity(DatabaseMixin, ClientActivity):
    """What clients did, in the file."""

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        row = (token.client, token.jti, token.until, most)
        return await self._execute(sql.REVOKE, row) > 0

    async def revoked_tokens(self, client_id: str) -> Sequence[RevokedToken]:
        rows = await self._fetch_inline(sql.REVOKED, (client_id,))
        return [RevokedToken(*row) for row in rows]

    async def sweep_revoked_tokens(self, *, before: int) -> int:
        return await self._execute(sql.SWEEP_REVOKED, (before,))

    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        await self._execute(sql.PUT_USES, (orjson.dumps(dict(uses)).decode(),))

    async def client_uses(self) -> Mapping[str, int]:
        return dict(await self._fetch_in_thread(sql.USES, ()))
