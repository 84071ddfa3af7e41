"""Access tokens: granted for credentials, and turned back into the caller that they speak for."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fhirpub.auth import discovery, jwt, refusals, token_request
from fhirpub.auth.authentication import ClientAuthentication, TokenEndpoint
from fhirpub.auth.bearer import bearer_token
from fhirpub.auth.caller import Caller
from fhirpub.auth.client_status import ClientStatusCache
from fhirpub.auth.client_use import ClientUses
from fhirpub.auth.clients import MAX_SCOPE_CHARACTERS, ends_soon
from fhirpub.auth.issuers.trust import OtherIssuers
from fhirpub.auth.keys import FRESH_SECONDS, KeyRing
from fhirpub.auth.revocation import record_revocation
from fhirpub.auth.scopes import intersect, narrow
from fhirpub.auth.token_cache import CachedToken, TokenCache
from fhirpub.auth.token_request import Credentials, Message, TokenRequest
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import (
    ConfigurationError,
    NotAuthenticated,
    StoreUnavailable,
    TokenRefused,
)
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import Client, CredentialStore

_MAX_CACHED = 8_192
_SCHEME = "Bearer "

_log = logger()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client gets. ``scope`` is None where the token carries none."""

    access_token: str = field(repr=False)
    expires_in: int
    scope: str | None
    client: str
    tenant: str


class Tokens:
    """Issues and verifies the service's own tokens, and admits those of other issuers.

    A disabled client or tenant is out, and a key rotated elsewhere is in use, within half a
    minute; when the store is unavailable, no client is admitted by older knowledge.
    """

    def __init__(
        self,
        *,
        access: CredentialStore,
        config: AuthConfig,
        limits: LimitsConfig,
        issuer: str,
        clock: Clock,
        endpoint: TokenEndpoint | None = None,
    ) -> None:
        if not config.tenant_claim or config.tenant_claim in jwt.REGISTERED:
            raise ConfigurationError(
                "[auth] tenant_claim must be a claim of its own, such as org_id"
            )
        self._access = access
        self._config = config
        self._issuer = issuer
        self._clock = clock
        self._expected = jwt.Expected(
            issuer=issuer,
            audience=config.audience,
            tenant_claim=config.tenant_claim,
            leeway_seconds=config.leeway_seconds,
        )
        self.ring = KeyRing(access, config, clock=clock)
        self._standings = ClientStatusCache(access, clock=clock)
        self.clients = ClientAuthentication(
            access,
            config=config,
            limits=limits,
            audiences=[*([endpoint.url] if endpoint else ()), issuer],
            fetch=endpoint.fetch if endpoint else None,
            clock=clock,
        )
        self._others = None
        if endpoint is not None and endpoint.issuers:
            self._others = OtherIssuers(
                endpoint.issuers,
                access=access,
                fetch=endpoint.fetch,
                leeway_seconds=config.leeway_seconds,
                clock=clock,
            )
        self._verified = TokenCache(_MAX_CACHED)
        self._uses = ClientUses(access, clock=clock)
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the signing keys, make the first one if there is none, and keep them fresh.

        A damaged key does not prevent the start: signing is only one task of the service.
        """
        await self.ring.signing()
        self._refreshing = asyncio.create_task(self._keep_fresh())

    async def stop(self) -> None:
        """Stop keeping the keys fresh, and record the last uses."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            with suppress(asyncio.CancelledError):
                await self._refreshing
            self._refreshing = None
            await self.clients.stop()
            if self._others is not None:
                await self._others.stop()
            with suppress(StoreUnavailable):
                await self._uses.record(at_once=True)

    async def grant(self, message: Message, *, address: str, certificate: str = "") -> Grant:
        """Return a token for credentials that a client sent from an address.

        With the digest of a certificate the token is bound to it (RFC 8705, section 3).
        Refused in this order: a malformed request (``invalid_request``), wrong credentials
        (``invalid_client``), an address outside of the client's networks
        (``unauthorized_client``), another audience or none of the wanted scopes
        (``insufficient_scope``). Raises TokenRefused, Throttled, TooLarge, StoreUnavailable.
        """
        request = token_request.read(message)
        client = await self.clients.prove(request.credentials, address)
        scopes = self._scopes(client, request)
        self._uses.note(client.id)
        is_asserted = not isinstance(request.credentials, Credentials)
        config = self._config
        lifetime = config.assertion_token_seconds if is_asserted else config.token_seconds
        binding = {"cnf": {jwt.CERTIFICATE: certificate}} if certificate else {}
        return await self._issue(client, scopes, lifetime, binding)

    async def revoke(self, message: Message, *, address: str) -> Client:
        """Revoke a token of the client that sent this from an address (RFC 7009, D-346).

        Returns the client.

        What is no token, not valid any more, or revoked already, is as it is to be. Refused as
        in :meth:`grant`, and the token of another client (``unauthorized_client``). Raises
        TokenRefused, Throttled, TooLarge, StoreUnavailable.
        """
        request = token_request.read_revocation(message)
        client = await self.clients.prove(request.credentials, address)
        claims = await self._own_claims(request.token, client)
        if claims is not None:
            await self._record_revocation(claims)
        return client

    async def revoke_for_operator(self, token: str) -> RevokedToken:
        """Revoke a token, whichever client has it; return what was recorded.

        Raises NotAuthenticated if it is not a valid one of this service, Throttled,
        StoreUnavailable.
        """
        return await self._record_revocation(await self._claims_of(token))

    def cached_caller(self, authorization: str) -> Caller | None:
        """Return the caller if this header value was verified recently; never waits.

        None proves nothing: ask :meth:`caller`.
        """
        if not authorization.startswith(_SCHEME):
            return None
        known = self._verified.get(authorization[7:])
        if known is not None and known.since <= self._clock() < known.until:
            return known.caller
        return None

    async def caller(self, authorization: Sequence[str]) -> Caller:
        """Return the caller, from the value of every Authorization header (D-17 to D-22).

        Raises NotAuthenticated, and StoreUnavailable if the store cannot be asked.
        """
        token = bearer_token(authorization)
        known = self._verified.get(token)
        if known is None:
            return await self._verify(token)
        now = self._clock()
        if known.since <= now < known.until:
            return known.caller
        return await self._look_again(token, known)

    async def caller_of_session(self, client_id: str, jti: str, kid: str) -> Caller:
        """Return the client whose session this is, unless it or its key was taken away (ADR 46).

        Raises NotAuthenticated, StoreUnavailable.
        """
        standing = await self._standings.with_key(client_id, kid)
        tenant = standing.admit(jti, self._config.environment, kid=kid)
        self._uses.note(client_id)
        scopes, networks = standing.scopes, standing.networks
        return Caller(tenant, client_id, scopes, networks, scopes_count=standing.is_person)

    async def end_session(self, token: RevokedToken) -> None:
        """End a session of a client. Raises NoSuchRecord, Throttled, StoreUnavailable."""
        await record_revocation(self._access, token, clock=self._clock)
        self._standings.forget(token.client)

    def jwks(self) -> dict[str, Any]:
        """Return the public keys that verify our tokens (RFC 7517)."""
        return self.ring.jwks()

    def metadata(self, base_url: str) -> dict[str, Any]:
        """Return the authorization server's metadata (RFC 8414)."""
        return discovery.server_metadata(base_url, issuer=self._issuer)

    def smart_configuration(self, base_url: str, *, types: Iterable[str]) -> dict[str, Any]:
        """Return the SMART configuration; scopes may name ``types``."""
        issuer, config = self._issuer, self._config
        return discovery.smart_configuration(base_url, issuer=issuer, config=config, types=types)

    async def _own_claims(self, token: str, client: Client) -> jwt.Claims | None:
        """Return the claims of a token of a client; None if it is not valid anyway."""
        try:
            claims = await self._claims_of(token)
        except NotAuthenticated:
            return None
        if claims.client_id != client.id:
            rule = "the token was issued to another client"
            raise TokenRefused("unauthorized_client", rule, client=client.id)
        return claims

    async def _claims_of(self, token: str) -> jwt.Claims:
        """Return the claims of a token that may be revoked already. Raises NotAuthenticated."""
        opened = jwt.decode(token)
        jwt.check_signature(token, opened, await self.ring.find(opened.kid))
        return self._expected.claims_of(opened.payload, now=self._clock())

    async def _record_revocation(self, claims: jwt.Claims) -> RevokedToken:
        token = RevokedToken(claims.client_id, claims.jti, self._end(claims))
        await self.end_session(token)
        self._verified.forget_client(token.client)
        return token

    def _scopes(self, client: Client, request: TokenRequest) -> tuple[str, ...]:
        """Return the client's scopes, narrowed to those it asks for now."""
        if request.audience not in ("", self._config.audience):
            rule = f"the client is not permitted this audience: use {self._config.audience}"
            raise TokenRefused("insufficient_scope", rule, client=client.id)
        if not client.scopes or not request.scopes:
            return client.scopes
        scopes = narrow(client.scopes, request.scopes)
        if not scopes:
            rule = "the client is not permitted these scopes"
            raise TokenRefused("insufficient_scope", rule, client=client.id)
        if len(" ".join(scopes)) > MAX_SCOPE_CHARACTERS:  # no token of them could be read
            rule = f"the scopes must not have more than {MAX_SCOPE_CHARACTERS} characters"
            raise TokenRefused("invalid_request", rule, client=client.id)
        return scopes

    async def _issue(
        self,
        client: Client,
        scopes: tuple[str, ...],
        lifetime: int,
        binding: Mapping[str, Any],
    ) -> Grant:
        key = await self.ring.signer()
        issued = self._clock() // 1000
        scope = " ".join(scopes) or None
        claims: dict[str, Any] = {
            "iss": self._issuer,
            "sub": client.id,
            "aud": self._config.audience,
            "exp": issued + lifetime,
            "iat": issued,
            "jti": secrets.token_urlsafe(16),
            "client_id": client.id,
            self._config.tenant_claim: client.tenant,
            **binding,
        }
        if scope is not None:
            claims["scope"] = scope
        _log.info("token granted", client=client.id, tenant=client.tenant, jti=claims["jti"])
        end = ends_soon(client, issued * 1000)
        if end is not None:
            _log.warning("secret ends soon", client=client.id, ends=instant(end))
        return Grant(jwt.encode(claims, key), lifetime, scope, client.id, client.tenant)

    async def _verify(self, token: str) -> Caller:
        if self._others is not None and (found := self._others.open(token)) is not None:
            admitted = await self._others.admit(*found)
            caller, since, until = admitted.caller, admitted.since, admitted.until
            self._verified.keep(token, CachedToken("", None, caller, since, until))
            return caller
        opened = jwt.decode(token)
        key = await self.ring.find(opened.kid)
        if key is None:
            jwt.check_signature(token, opened, await self.ring.find_foreign(opened.kid))
            raise refusals.misdirected("key of another environment", "environment")
        jwt.check_signature(token, opened, key)
        claims = self._expected.claims_of(opened.payload, now=self._clock())
        return await self._authorize(token, opened.kid, claims)

    async def _look_again(self, token: str, known: CachedToken) -> Caller:
        """Check what may have changed since the signature was found to be right."""
        if known.claims is None:
            self._verified.forget(token)
            return await self._verify(token)
        try:
            if self._clock() >= self._end(known.claims):
                raise refusals.expired()
            if await self.ring.find(known.kid) is None:
                raise refusals.unproved("kid")
            return await self._authorize(token, known.kid, known.claims)
        except NotAuthenticated:
            self._verified.forget(token)
            raise

    async def _authorize(self, token: str, kid: str, claims: jwt.Claims) -> Caller:
        standing = await self._standings.of(claims.client_id)
        tenant = standing.admit(claims.jti, self._config.environment, tenant_id=claims.tenant)
        self._uses.note(claims.client_id)
        scopes = intersect(standing.scopes, claims.scopes)
        caller = Caller(tenant, claims.client_id, scopes, standing.networks, claims.certificate)
        until = min(standing.until, self._end(claims))
        self._verified.keep(token, CachedToken(kid, claims, caller, standing.read, until))
        return caller

    def _end(self, claims: jwt.Claims) -> int:
        return (claims.expires + self._config.leeway_seconds) * 1000

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(FRESH_SECONDS / 2)
            try:
                await self.ring.refresh()
            except StoreUnavailable as problem:
                _log.warning("signing keys not read", reason=problem.reason)
            try:
                await self._uses.record()
            except StoreUnavailable as problem:
                _log.warning("uses of clients not recorded", reason=problem.reason)
