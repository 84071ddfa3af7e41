"""The callers that may administer the service over HTTP: those that the settings name."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fhirpub.auth import refusals
from fhirpub.auth.assertions.key_set import MAX_BYTES, PublicKey, read_key_set
from fhirpub.auth.assertions.single_use import use_once
from fhirpub.auth.assertions.verification import TYPE as ASSERTION_TYPE
from fhirpub.auth.assertions.verification import (
    AssertionRefused,
    OpenedAssertion,
    open_assertion,
    verify_assertion,
)
from fhirpub.auth.bearer import bearer_token
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import read_statement, sign_statement
from fhirpub.auth.token_request import Message, fields_of, refuse_malformed
from fhirpub.config.administration import BOOTSTRAP, AdminConfig, admin_base_url, admin_callers
from fhirpub.errors import TokenRefused
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.client_activity_contract import ClientActivity

TYPE = "admin+jwt"
"""The ``typ`` of tokens for administration: the service takes them nowhere else."""
_OWNER = "admin "
"""Before the name of a caller, among the owners of used assertions: no client has such an id."""

_log = logger()


class Callers:
    """Authenticates callers: by the bootstrap key, or by a token that an assertion got."""

    def __init__(
        self, config: AdminConfig, ring: KeyRing, store: ClientActivity, *, clock: Clock
    ) -> None:
        self._config = config
        self._store = store
        self._ring = ring
        self._clock = clock
        self.audience = f"{admin_base_url(config)}/admin/v1"

    async def authenticate(self, authorization: Sequence[str]) -> str:
        """Return the name of the caller, from the value of each Authorization header.

        Raises NotAuthenticated, StoreUnavailable.
        """
        token = bearer_token(authorization)
        if self._is_bootstrap_key(token):
            return BOOTSTRAP
        return self._caller_of(await read_statement(self._ring, token, type_=TYPE))

    async def grant(self, message: Message) -> Mapping[str, Any]:
        """Return a token for the assertion of a caller (RFC 7523, section 2.2).

        Raises TokenRefused, Throttled, StoreUnavailable.
        """
        audiences = (f"{self.audience}/token", self.audience)
        try:
            opened = open_assertion(_assertion_in(fields_of(message)))
        except AssertionRefused as problem:
            raise _refused(str(problem)) from None
        name = await self.prove(opened, audiences)
        now = self._clock() // 1000
        seconds = min(self._config.token_seconds, self._ring.longest_seconds)
        claims = {"sub": name, "aud": self.audience, "iat": now, "exp": now + seconds}
        token = await sign_statement(self._ring, claims, type_=TYPE)
        return {"access_token": token, "token_type": "Bearer", "expires_in": seconds}

    async def prove(self, opened: OpenedAssertion, audiences: Sequence[str]) -> str:
        """Return the caller that signed an assertion for an audience, which is used up.

        Raises TokenRefused, Throttled, StoreUnavailable.
        """
        try:
            file = admin_callers(self._config).get(opened.subject)
            assertion = verify_assertion(
                opened,
                await asyncio.to_thread(_keys_in, file) if file else (),
                audiences=audiences,
                clock=self._clock,
            )
            owner = f"{_OWNER}{assertion.subject}"
            await use_once(self._store, assertion, owner=owner, clock=self._clock)
        except AssertionRefused as problem:
            raise _refused(str(problem)) from None
        return assertion.subject

    def _is_bootstrap_key(self, text: str) -> bool:
        wanted = self._config.bootstrap_key_hash
        digest = hashlib.sha256(text.encode()).hexdigest()
        return bool(wanted) and hmac.compare_digest(digest, wanted)

    def _caller_of(self, claims: Mapping[str, Any]) -> str:
        """Return the caller of a token that the service has signed. Raises NotAuthenticated."""
        if claims.get("aud") != self.audience:
            raise refusals.misdirected("aud", "audience")
        expires, name = claims.get("exp"), claims.get("sub")
        if not isinstance(expires, int) or self._clock() >= expires * 1000:
            raise refusals.expired()
        if not isinstance(name, str) or name not in self._names():
            raise refusals.unproved("caller that the settings do not name")
        return name

    def _names(self) -> frozenset[str]:
        return frozenset(admin_callers(self._config))


def bootstrap_kid(config: AdminConfig) -> str:
    """Return a name of the bootstrap key, which another key does not have."""
    return hashlib.sha256(config.bootstrap_key_hash.encode()).hexdigest()[:16]


async def has_key(config: AdminConfig, name: str, kid: str) -> bool:
    """Return whether a caller has a key now."""
    if name == BOOTSTRAP:
        return hmac.compare_digest(kid.encode(), bootstrap_kid(config).encode())
    file = admin_callers(config).get(name)
    keys = await asyncio.to_thread(_keys_in, file) if file else ()
    return any(one.kid == kid for one in keys)


def _assertion_in(fields: Mapping[str, str]) -> str:
    if fields.get("grant_type") != "client_credentials":
        raise TokenRefused("unsupported_grant_type", "grant_type must be client_credentials")
    if fields.get("client_assertion_type") != ASSERTION_TYPE:
        raise refuse_malformed(f"client_assertion_type must be {ASSERTION_TYPE}")
    return fields.get("client_assertion", "")


def _refused(reason: str) -> TokenRefused:
    return TokenRefused("invalid_client", f"the assertion {reason}")


def _keys_in(file: Path) -> tuple[PublicKey, ...]:
    """Return the keys in a file as it is now; none if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return read_key_set(stream.read(MAX_BYTES + 1))
    except (OSError, ValueError) as problem:
        _log.warning("keys of a caller not read", file=str(file), reason=type(problem).__name__)
        return ()
