"""Statements that the service signs: with the key that it has, verified by any that it had."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fhirpub.auth import jwt
from fhirpub.auth.keys import KeyRing, ReadyKey, make_ready
from fhirpub.config.settings import ENVIRONMENTS
from fhirpub.errors import NotAuthenticated
from fhirpub.storage.contract import CredentialStore


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
