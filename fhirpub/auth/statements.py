"""Statements that the service signs: with the key that it has, verified by any that it had."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, Literal

from fhirpub.auth import jwt, refusals
from fhirpub.auth.keys import KeyRing, ReadyKey, make_ready
from fhirpub.config.settings import ENVIRONMENTS
from fhirpub.errors import NotAuthenticated
from fhirpub.runtime.clock import Clock
from fhirpub.storage.client_activity_contract import AssertionUse, ClientActivity, UsedAssertion
from fhirpub.storage.contract import CredentialStore

Purpose = Literal["sign-in", "invitation", "challenge", "provider"]
VALID_SECONDS: Mapping[Purpose, int] = {
    "sign-in": 120,
    "invitation": 7 * 86_400,
    "challenge": 300,
    "provider": 600,
}
"""How long each kind of one-time statement is valid."""
_ONCE = "console-once+jwt"
_OWNER = "console "
"""Before the purpose, among the owners of used assertions: no client has such an id."""
_MAX_LIVE = 100_000


async def sign_statement(ring: KeyRing, claims: Mapping[str, Any], *, type_: str) -> str:
    """Return a signed statement of the service, which is no token. Raises StoreUnavailable."""
    return jwt.encode(claims, await ring.signer(), type_=type_)


async def read_statement(ring: KeyRing, statement: str, *, type_: str) -> Mapping[str, Any]:
    """Return the claims of a statement that a current key of the service has signed.

    Raises NotAuthenticated, StoreUnavailable.
    """
    opened = jwt.decode(statement, type_=type_)
    jwt.check_signature(statement, opened, await ring.find(opened.kid))
    return opened.payload


class OneTimeStatements:
    """Statements that can be used once, by all processes together; nothing is kept until then."""

    def __init__(self, ring: KeyRing, access: ClientActivity, *, clock: Clock) -> None:
        self._ring = ring
        self._access = access
        self._clock = clock

    async def sign(self, purpose: Purpose, claims: Mapping[str, Any]) -> str:
        """Return a statement, such as that in a link. Raises StoreUnavailable."""
        own = {
            "purpose": purpose,
            "jti": secrets.token_urlsafe(16),
            "exp": self._clock() // 1000 + VALID_SECONDS[purpose],
        }
        return await sign_statement(self._ring, {**claims, **own}, type_=_ONCE)

    async def read(self, purpose: Purpose, statement: str) -> Mapping[str, Any]:
        """Return the claims of a statement, which is not used up.

        Raises NotAuthenticated if it is wrong or has expired; StoreUnavailable.
        """
        claims = await read_statement(self._ring, statement, type_=_ONCE)
        if claims.get("purpose") != purpose:
            raise refusals.unproved("purpose")
        if self._clock() >= claims["exp"] * 1000:
            raise refusals.expired()
        return claims

    async def use(self, purpose: Purpose, statement: str) -> Mapping[str, Any]:
        """Use up a statement; return its claims.

        Raises NotAuthenticated as :meth:`read` does, or if it was used before; StoreUnavailable.
        """
        claims = await self.read(purpose, statement)
        used = UsedAssertion(f"{_OWNER}{purpose}", claims["jti"], claims["exp"] * 1000)
        use = await self._access.use_assertion(used, now=self._clock(), most=_MAX_LIVE)
        if use is not AssertionUse.FIRST:
            raise refusals.unproved("used before")
        return claims


class StatementReader:
    """Verifies statements of one type by all keys of the store, however old they are."""

    def __init__(self, access: CredentialStore, *, type_: str) -> None:
        self._access = access
        self._type = type_
        self._keys: dict[str, ReadyKey] | None = None

    async def read(self, statement: str) -> Mapping[str, Any]:
        """Return the claims of a statement.

        Raises ValueError if it is not one that a key of the store has signed; StoreUnavailable.
        """
        if self._keys is None:
            self._keys = await self._read_keys()
        try:
            opened = jwt.decode(statement, type_=self._type)
            jwt.check_signature(statement, opened, self._keys.get(opened.kid))
        except NotAuthenticated as refusal:
            raise ValueError(refusal.reason) from None
        return opened.payload

    async def _read_keys(self) -> dict[str, ReadyKey]:
        keys = {}
        for environment in ENVIRONMENTS:
            for record in await self._access.signing_keys(environment):
                keys[record.kid] = await asyncio.to_thread(make_ready, record)
        return keys
