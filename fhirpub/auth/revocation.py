"""Revoked tokens: few for each client, until they have expired (RFC 7009, D-346)."""

from __future__ import annotations

import math

from fhirpub.errors import NoSuchRecord, Throttled
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import CredentialStore

MAX_REVOKED = 1_000
"""How many revoked tokens of a client are recorded: each worker has them in memory."""
_MINUTE_SECONDS, _HOUR_SECONDS = 60, 3_600

_log = logger()


async def record_revocation(access: CredentialStore, token: RevokedToken, *, clock: Clock) -> None:
    """Record that a token is revoked: all processes refuse it within half a minute.

    Raises NoSuchRecord for an unknown client, Throttled if the client has `MAX_REVOKED` others,
    until the first of them has expired.
    """
    client = await access.client(token.client)
    if client is None:
        raise NoSuchRecord("client", token.client)
    if not await access.revoke_token(token, most=MAX_REVOKED):
        _log.warning("too many tokens revoked", client=token.client, most=MAX_REVOKED)
        ends = [item.until for item in await access.revoked_tokens(token.client)]
        # One that has expired is swept after an hour.
        wait = math.ceil((min(ends, default=0) - clock()) / 1000) + _HOUR_SECONDS
        wait = min(max(_MINUTE_SECONDS, wait), _HOUR_SECONDS)
        raise Throttled(retry_after=wait, client=token.client)
    _log.info("token revoked", client=token.client, tenant=client.tenant, jti=token.jti)
