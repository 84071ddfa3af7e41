"""The part of the embedded store that records what clients did."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from fhirpub.storage.client_activity_contract import (
    AssertionUse,
    ClientActivity,
    RevokedToken,
    UsedAssertion,
)
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

    async def use_assertion(self, used: UsedAssertion, *, now: int, most: int) -> AssertionUse:
        def work(connection: Any) -> AssertionUse:
            ((counted,),) = connection.execute(sql.COUNT_USED, (used.owner, now))
            if counted >= most:
                return AssertionUse.TOO_MANY
            row = (used.owner, used.jti, used.until)
            first = connection.execute(sql.USE, row).rowcount
            return AssertionUse.FIRST if first else AssertionUse.REPEATED

        use: AssertionUse = await self._open.write(work)
        return use

    async def sweep_used_assertions(self, *, before: int) -> int:
        return await self._execute(sql.SWEEP_USED, (before,))

    async def used_assertions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1_000
    ) -> Sequence[UsedAssertion]:
        rows = await self._fetch_in_thread(sql.USED, (*after, limit))
        return [UsedAssertion(*row) for row in rows]

    async def put_used_assertions(self, used: Collection[UsedAssertion]) -> None:
        rows = [(one.owner, one.jti, one.until) for one in used]
        await self._open.write(lambda connection: connection.executemany(sql.PUT_USED, rows))

    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        await self._execute(sql.PUT_USES, (orjson.dumps(dict(uses)).decode(),))

    async def client_uses(self) -> Mapping[str, int]:
        return dict(await self._fetch_in_thread(sql.USES, ()))
