"""Sign-in by OpenID Connect: the code flow with PKCE, of a provider that the settings name.

The provider says who a person is, and the service what they may do: the claim that the settings
name is the key of a client, or is in the list of operators (OpenID Connect Core 1.0, section 3.1;
RFC 7636).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import BasicAuth, ClientError, ClientResponse, ClientSession, ClientTimeout

from fhirpub.auth import refusals
from fhirpub.auth.assertions.published_keys import KeysNotFetched, PublishedKeys
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
_MOST_BYTES = 64 * 1024
_TIMEOUT = ClientTimeout(total=10)
_SCOPE = "openid email profile"

_log = logger()


class ProviderUnavailable(Exception):
    """The provider cannot be asked, or its answer is not that of a provider."""


@dataclass(frozen=True, slots=True)
class _Document:
    """What came of a request: ``problem`` is empty, or why there is no body."""

    problem: str = ""
    body: bytes = field(default=b"", repr=False)
    cache_control: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """What a person takes to the provider, and what the browser keeps for the way back.

    Attributes:
        state: Comes back with the code.
        nonce: Comes back in the ID token.
        verifier: Proves that the code is used by who asked for it.
    """

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)

    @classmethod
    def create(cls) -> SignInRequest:
        """Return a request that nobody can guess."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state=state, nonce=nonce, verifier=verifier)

    @property
    def challenge(self) -> str:
        """The verifier, as the provider gets it first."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class OpenIdProvider:
    """The provider of the settings."""

    def __init__(self, config: ConsoleConfig, *, redirect: str, clock: Clock) -> None:
        self._config = config
        self._redirect = redirect
        self._clock = clock
        self._keys = PublishedKeys(discovering(self._fetch), clock=clock)

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
        """Return the claim that says who signed in.

        Raises NotAuthenticated, ProviderUnavailable.
        """
        claims = await self._verified(await self._exchange(code, request.verifier))
        if claims.get("nonce") != request.nonce:
            raise refusals.unproved("nonce")
        value = claims.get(self._config.oidc_claim)
        if type(value) is not str or not value:
            raise refusals.lacks(self._config.oidc_claim)
        if self._config.oidc_claim == "email" and claims.get("email_verified") is not True:
            raise refusals.unproved("email that the provider has not verified")
        return value

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
        issuer = self._config.oidc_issuer
        found = await self._fetch(issuer.rstrip("/") + _DISCOVERY, "")
        document = _object(found.body) if not found.problem else {}
        names = ("authorization_endpoint", "token_endpoint")
        if document.get("issuer") != issuer or not all(
            _is_near(document.get(name), issuer) for name in names
        ):
            _log.warning("OpenID provider not read", reason=found.problem or "not of the issuer")
            raise ProviderUnavailable("its configuration")
        return document

    async def _exchange(self, code: str, verifier: str) -> str:
        """Return the ID token for a code. Raises NotAuthenticated, ProviderUnavailable."""
        known, config = await self._discover(), self._config
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": verifier,
            "client_id": config.oidc_client_id,
        }
        credentials = BasicAuth(config.oidc_client_id, config.oidc_client_secret)
        found = await self._request("POST", str(known["token_endpoint"]), form, credentials)
        token = _object(found.body).get("id_token")
        if found.problem or type(token) is not str:
            raise refusals.unproved("code")
        return token

    async def _fetch(self, url: str, _tenant: str) -> _Document:
        return await self._request("GET", url)

    async def _request(
        self,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        credentials: BasicAuth | None = None,
    ) -> _Document:
        """Ask the provider, whose address is the operator's; redirects are not followed."""
        try:
            async with (
                ClientSession(timeout=_TIMEOUT) as session,
                session.request(
                    method, url, data=form, auth=credentials, allow_redirects=False
                ) as answer,
            ):
                body = b"".join([chunk async for chunk in _pieces(answer)])
                is_whole = answer.ok and len(body) <= _MOST_BYTES
                problem = "" if is_whole else f"status {answer.status}"
                control = answer.headers.get("Cache-Control", "")
                return _Document(problem, b"" if problem else body, control)
        except (ClientError, OSError, TimeoutError, ValueError) as problem:
            return _Document(type(problem).__name__)


async def _pieces(answer: ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body of an answer, up to a piece more than is read."""
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        yield chunk
        if size > _MOST_BYTES:
            return


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
