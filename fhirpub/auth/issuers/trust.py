"""Callers with a token of another issuer: verified, and confined to what that one may do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fhirpub.auth import refusals
from fhirpub.auth.assertions.key_set import PublicKey
from fhirpub.auth.assertions.published_keys import Fetch, KeysNotFetched, PublishedKeys
from fhirpub.auth.caller import Caller
from fhirpub.auth.client_status import TenantStatusCache
from fhirpub.auth.issuers.discovery import discovering
from fhirpub.auth.issuers.verification import (
    MAX_CHARACTERS,
    check_claims,
    check_header,
    check_signature,
)
from fhirpub.auth.jwt import Segments, parse_segments
from fhirpub.auth.scopes import intersect
from fhirpub.errors import NotAuthenticated, Throttled
from fhirpub.plugin_api.issuers import TokenHolder, TokenIssuer, TokenRejected
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import CredentialStore

STALE_SECONDS = 86_400
"""So long keys are used further while their issuer is away."""
_CLIENT = re.compile(r"[\x21-\x7e]{1,128}")
_MAX_SCOPES = 50
"""Each is compared with the others, on the event loop."""

_log = logger()


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller, and between which moments it may be taken for granted."""

    caller: Caller
    since: int
    until: int


class OtherIssuers:
    """The issuers whose tokens are accepted beside the service's own.

    ``fetch`` gets what an issuer publishes, by the rules for its first tenant.
    """

    def __init__(
        self,
        issuers: Sequence[TokenIssuer],
        *,
        access: CredentialStore,
        fetch: Fetch,
        leeway_seconds: int,
        clock: Clock,
    ) -> None:
        self._issuers = {issuer.url: issuer for issuer in issuers}
        self._leeway_seconds = leeway_seconds
        self._clock = clock
        self._tenants = TenantStatusCache(access, clock=clock)
        self._keys = PublishedKeys(discovering(fetch), clock=clock, stale_seconds=STALE_SECONDS)
        self._seen: set[str] = set()

    async def stop(self) -> None:
        """End the fetches of keys."""
        await self._keys.stop()

    def open(self, token: str) -> tuple[Segments, TokenIssuer] | None:
        """Take apart a token that claims to be of one of the issuers; None for any other."""
        try:
            opened = parse_segments(token, most=MAX_CHARACTERS)
        except NotAuthenticated:
            return None
        named = opened.payload.get("iss")
        issuer = self._issuers.get(named) if type(named) is str else None
        return None if issuer is None else (opened, issuer)

    async def admit(self, token: Segments, issuer: TokenIssuer) -> Admitted:
        """Return the caller. Raises NotAuthenticated, StoreUnavailable."""
        with _naming(issuer):
            check_header(token)
            check_signature(token, await self._published(issuer, token.kid))
            proved = check_claims(
                token.payload, issuer, leeway_seconds=self._leeway_seconds, now=self._clock()
            )
            holder = self._holder(issuer, token)
            status = await self._tenants.of(holder.tenant)
            if status.tenant is None or status.tenant.disabled:
                raise refusals.disabled()
        scopes = intersect(issuer.scopes, holder.scopes)
        client = f"{issuer.name}:{holder.client}"
        certificate = proved.certificate
        caller = Caller(status.tenant, client, scopes, certificate=certificate, scopes_count=True)
        return Admitted(caller, status.read, min(status.until, proved.until))

    async def _published(self, issuer: TokenIssuer, kid: str) -> Sequence[PublicKey]:
        try:
            return await self._keys.at(issuer.url, tenant=issuer.tenants[0], kid=kid)
        except (KeysNotFetched, Throttled):
            raise refusals.unproved("keys not fetched") from None

    def _holder(self, issuer: TokenIssuer, token: Segments) -> TokenHolder:
        """Return the client that the plugin finds in the claims, if it may find that one."""
        try:
            found: Any = issuer.identify(token.payload)
        except TokenRejected as problem:
            raise refusals.unknown_holder(str(problem)) from None
        except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
            facts = where(problem)
            if facts["place"] not in self._seen:
                self._seen.add(facts["place"])
                _log.error("claims not read", issuer=issuer.name, **facts)
            raise refusals.unknown_holder("claims not read") from None
        if not isinstance(found, TokenHolder):
            raise refusals.unknown_holder("no holder")
        if type(found.client) is not str or not _CLIENT.fullmatch(found.client):
            raise refusals.unknown_holder("client")
        if found.tenant not in issuer.tenants:
            raise refusals.unknown_holder("tenant of another issuer")
        if not _are_scopes(found.scopes):
            raise refusals.unknown_holder("scopes")
        return found


def _are_scopes(scopes: Any) -> bool:
    is_short = isinstance(scopes, tuple) and len(scopes) <= _MAX_SCOPES
    return is_short and all(type(scope) is str for scope in scopes)


@contextmanager
def _naming(issuer: TokenIssuer) -> Iterator[None]:
    """Name the issuer in the log when its token is refused."""
    try:
        yield
    except NotAuthenticated as refusal:
        refusal.reason = f"issuer {issuer.name}: {refusal.reason}"
        raise
