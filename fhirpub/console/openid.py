"""Sign-in by OpenID Connect: the code flow with PKCE, of a provider that the settings name.

The provider identifies a person, and the service decides what they may do: the claim that the
settings name is the key of a client, or is in the list of operators (OpenID Connect Core 1.0,
section 3.1; RFC 7636).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote_plus, urlencode

from fhirpub.auth import refusals
from fhirpub.auth.assertions.published_keys import KeysNotFetched, Published, PublishedKeys
from fhirpub.auth.issuers.discovery import discovering
from fhirpub.auth.issuers.verification import (
    MAX_CHARACTERS,
    check_claims,
    check_header,
    check_signature,
)
from fhirpub.auth.jwt import parse_segments
from fhirpub.config.console import ConsoleConfig
from fhirpub.errors import Refused, Throttled
from fhirpub.fhir.strict_json import loads
from fhirpub.plugin_api.issuers import TokenHolder, TokenIssuer, TokenRejected
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger

_DISCOVERY = "/.well-known/openid-configuration"
_SCOPE = "openid email profile"
_KEPT_SECONDS, _FAILED_SECONDS = 300, 5
"""So long the configuration of the provider is kept, or that it cannot be read."""

_log = logger()


class ProviderUnavailable(Exception):
    """The provider cannot be asked, or its answer is not that of a provider."""


class RequestOfProvider(Protocol):
    """Asks the provider; what came of it has no body if there is a problem. Raises nothing."""

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Published: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """What a person takes to the provider, and what the browser keeps for the way back.

    Attributes:
        state: Comes back with the code.
        nonce: Comes back in the ID token.
        verifier: Proves that the code is used by the browser that asked for it.
    """

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)

    @classmethod
    def create(cls) -> SignInRequest:
        """Return a request whose values cannot be guessed."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state=state, nonce=nonce, verifier=verifier)

    @property
    def challenge(self) -> str:
        """The verifier, as the provider gets it first."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class OpenIdProvider:
    """The provider of the settings."""

    def __init__(
        self, config: ConsoleConfig, *, redirect: str, request: RequestOfProvider, clock: Clock
    ) -> None:
        self._config = config
        self._redirect = redirect
        self._clock = clock
        self._request = request
        self._keys = PublishedKeys(discovering(self._fetch), clock=clock)
        self._known: Mapping[str, Any] = {}
        self._until = 0
        self._reading: asyncio.Task[None] | None = None

    async def address(self, request: SignInRequest) -> str:
        """Return where the person signs in. Raises ProviderUnavailable."""
        known = await self._discover()
        query = {
            "response_type": "code",
            "client_id": self._config.oidc_client_id,
            "redirect_uri": self._redirect,
            "scope": _SCOPE,
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": request.challenge,
            "code_challenge_method": "S256",
        }
        place = str(known["authorization_endpoint"])
        return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}"

    async def identify(self, code: str, request: SignInRequest) -> str:
        """Return the claim that names the person.

        Raises NotAuthenticated, ProviderUnavailable.
        """
        granted = await self._exchange(code, request.verifier)
        claims = await self._verified(granted["id_token"])
        if claims.get("nonce") != request.nonce:
            raise refusals.unproved("nonce")
        name = self._config.oidc_claim
        if name not in claims:
            claims = {**await self._user_info(granted, claims), **claims}
        value = claims.get(name)
        if type(value) is not str or not value:
            raise refusals.lacks(name)
        if name == "email" and claims.get("email_verified") is not True:
            raise refusals.unproved("email that the provider has not verified")
        return value

    async def _user_info(
        self, granted: Mapping[str, Any], claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the claims that are not in the ID token (OpenID Connect Core 1.0, 5.3)."""
        place = (await self._discover()).get("userinfo_endpoint")
        if not _is_near(place, self._config.oidc_issuer):
            return {}
        authorization = {"Authorization": f"Bearer {granted.get('access_token', '')}"}
        found = _object((await self._request("GET", str(place), headers=authorization)).body)
        return found if found.get("sub") == claims.get("sub") else {}

    async def _verified(self, token: str) -> Mapping[str, Any]:
        """Return the claims of an ID token. Raises NotAuthenticated, ProviderUnavailable."""
        config = self._config
        opened = parse_segments(token, most=MAX_CHARACTERS)
        check_header(opened)
        try:
            keys = await self._keys.at(config.oidc_issuer, tenant="", kid=opened.kid)
        except (KeysNotFetched, Throttled):
            raise ProviderUnavailable("its keys") from None
        check_signature(opened, keys)
        payload = {name: value for name, value in opened.payload.items() if name != "typ"}
        check_claims(payload, _issuer_of(config), leeway_seconds=0, now=self._clock())
        return payload

    async def _discover(self) -> Mapping[str, Any]:
        """Return the configuration, read once for all sign-ins. Raises ProviderUnavailable."""
        if self._clock() >= self._until:
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            await asyncio.shield(self._reading)
        if not self._known:
            raise ProviderUnavailable("its configuration")
        return self._known

    async def _read(self) -> None:
        try:
            self._known = await self._configuration()
            seconds = _KEPT_SECONDS if self._known else _FAILED_SECONDS
            self._until = self._clock() + seconds * 1000
        finally:
            self._reading = None

    async def _configuration(self) -> Mapping[str, Any]:
        """Return the configuration; nothing if it cannot be read."""
        issuer = self._config.oidc_issuer
        found = await self._fetch(issuer.rstrip("/") + _DISCOVERY, "")
        document = _object(found.body) if not found.problem else {}
        names = ("authorization_endpoint", "token_endpoint")
        if document.get("issuer") != issuer or not all(
            _is_near(document.get(name), issuer) for name in names
        ):
            _log.warning("OpenID provider not read", reason=found.problem or "not of the issuer")
            return {}
        return document

    async def _exchange(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Return the tokens for a code. Raises NotAuthenticated, ProviderUnavailable."""
        known, config = await self._discover(), self._config
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": verifier,
            "client_id": config.oidc_client_id,
        }
        place = str(known["token_endpoint"])
        found = await self._request("POST", place, form=form, headers=self._credentials())
        granted = _object(found.body)
        if found.problem or type(granted.get("id_token")) is not str:
            raise refusals.unproved("code")
        return granted

    def _credentials(self) -> Mapping[str, str]:
        """Return the header that proves the client (RFC 6749, 2.3.1); a public one has none."""
        config = self._config
        if not config.oidc_client_secret:
            return {}
        pair = f"{quote_plus(config.oidc_client_id)}:{quote_plus(config.oidc_client_secret)}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    async def _fetch(self, url: str, _tenant: str) -> Published:
        return await self._request("GET", url)


def _issuer_of(config: ConsoleConfig) -> TokenIssuer:
    """Return the provider as what the verification of tokens asks for; it finds no holder."""

    def identify(_claims: Mapping[str, Any]) -> TokenHolder:
        raise TokenRejected("an ID token is no access token")

    return TokenIssuer(
        name="console",
        url=config.oidc_issuer,
        audience=config.oidc_client_id,
        tenants=(),
        scopes=(),
        identify=identify,
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = loads(body)
    except Refused:
        return {}
    return value if type(value) is dict else {}


def _is_near(place: Any, issuer: str) -> bool:
    """Return whether an endpoint is reached by https, unless the issuer itself is not."""
    scheme = issuer.partition("://")[0]
    return type(place) is str and place.startswith(("https://", f"{scheme}://"))
