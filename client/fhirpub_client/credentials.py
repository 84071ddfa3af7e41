"""How a client proves itself at the token endpoint, and the token that it got."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from fhirpub_client.errors import Refused
from fhirpub_client.retries import is_deferred

_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 300
_EARLY_SECONDS = 30
"""So long before its end a token is renewed: a request with it must still arrive."""


class Credentials(ABC):
    """What a client proves itself by."""

    @abstractmethod
    def fields(self, token_url: str) -> Mapping[str, str]:
        """Return the fields of a request for a token, besides the type of the grant."""


@dataclass(frozen=True, slots=True)
class Secret(Credentials):
    """A client secret.

    Attributes:
        client_id: The id that the operator gave.
        client_secret: The secret.
        audience: The audience of the service, if it is not the address with `/fhir` behind it.
    """

    client_id: str
    client_secret: str
    audience: str = ""

    def fields(self, token_url: str) -> Mapping[str, str]:
        """Return the fields of a request for a token (RFC 6749, section 2.3.1)."""
        base = token_url.removesuffix("/oauth/token")
        return {
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "audience": self.audience or f"{base}/fhir",
        }

    def __repr__(self) -> str:
        """Keep the secret out of logs."""
        return f"Secret({self.client_id!r}, ...)"


@dataclass(frozen=True, slots=True)
class PrivateKey(Credentials):
    """A private key, whose public half the service knows (SMART Backend Services).

    It needs the extra `fhirpub-client[keys]`.

    Attributes:
        client_id: The id that the operator gave.
        key: The private key, as the members of a JWK with its `kid`.
        algorithm: `ES384` or `RS384`.
    """

    client_id: str
    key: Mapping[str, Any]
    algorithm: str = "ES384"

    def fields(self, token_url: str) -> Mapping[str, str]:
        """Return the fields of a request for a token, with a new assertion (RFC 7523)."""
        from joserfc import jwt  # noqa: PLC0415 - of an extra
        from joserfc.jwk import import_key  # noqa: PLC0415

        header = {"alg": self.algorithm, "kid": self.key["kid"], "typ": "JWT"}
        claims = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": token_url,
            "exp": int(time.time()) + _ASSERTION_SECONDS,  # noqa: TID251 - by the clock of the caller
            "jti": str(uuid.uuid4()),
        }
        key = import_key(dict(self.key))
        assertion = jwt.encode(header, claims, key, algorithms=[self.algorithm])
        return {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": assertion}

    def __repr__(self) -> str:
        """Keep the key out of logs."""
        return f"PrivateKey({self.client_id!r}, ...)"


class Deferred(Exception):
    """No token now; ``response`` names the time."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class TokenAuth(httpx.Auth):
    """Adds a token to each request, and gets another one before it ends or when it is refused."""

    requires_response_body = True

    def __init__(self, credentials: Credentials, base_url: str, *, scope: str) -> None:
        self._credentials = credentials
        self._url = f"{base_url}/oauth/token"
        self._scope = scope
        self._token = ""
        self._renewed_at = 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request with the token, once more with another one if that is refused."""
        if not self._token or time.monotonic() >= self._renewed_at:
            yield from self._renew(request)
        used = request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            if used == f"Bearer {self._token}":  # no other request has renewed it since
                yield from self._renew(request)
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    def _renew(self, caller: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Get another token, with the timeout of the request that needs it: httpx adds none."""
        fields = {"grant_type": "client_credentials", **self._credentials.fields(self._url)}
        if self._scope:
            fields["scope"] = self._scope
        limits = {"timeout": caller.extensions.get("timeout", {})}
        response = yield httpx.Request("POST", self._url, data=fields, extensions=limits)
        if is_deferred(response):
            raise Deferred(response)
        if not response.is_success:
            raise Refused(response)
        granted = response.json()
        self._token = granted["access_token"]
        lives = granted.get("expires_in", 0) - _EARLY_SECONDS
        self._renewed_at = time.monotonic() + lives
