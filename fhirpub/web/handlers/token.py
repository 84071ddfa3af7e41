"""POST /oauth/token and /oauth/revoke, and what clients need to know (RFC 6749, 7009, 8414)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.audit.trail import AuditTrail
from fhirpub.auth.token_request import Message, refuse_malformed
from fhirpub.auth.tokens import Grant
from fhirpub.config.settings import Config
from fhirpub.errors import StoreUnavailable, Throttled, TokenRefused, TooLarge
from fhirpub.fhir.strict_json import dumps
from fhirpub.http.exchange import Headers
from fhirpub.storage.contract import Client
from fhirpub.web.error_mapping import MalformedRequest, TooSlow, response_for, status_of
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.body import BodyHandler

_MAX_BYTES = 8192


class OAuthHandler(BodyHandler):
    """A request of OAuth, in which the client authenticates by its credentials."""

    requires_token = False

    def count_refusal(self, audit: AuditTrail) -> None:
        """Count a refused request."""
        status = int(self.status)
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            audit.count_refusal(self.action, status, address=self.address, client=self.claimed)

    def default_headers(self) -> Headers:
        """Keep tokens and refusals out of caches (RFC 6749 section 5.1)."""
        return Headers(
            super().default_headers(), **{"Cache-Control": "no-store", "Pragma": "no-cache"}
        )

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted, as OAuth does."""

    def check_content_type(self) -> None:
        """Leave the type of the body to the token request; refuse a compressed one: 400."""
        if self.request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise refuse_malformed("the body must not be compressed")

    def max_bytes(self) -> int:
        """Return how large a token request may be."""
        return _MAX_BYTES

    def take_message(self) -> Message:
        """Return what the client sent."""
        return Message(
            content_type=self.request.headers.get("Content-Type", ""),
            body=self.take_body(),
            authorization=self.request.headers.get_list("Authorization"),
            query=self.request.query,
        )

    def write_refusal(self, problem: Exception) -> None:
        """Write a refusal as OAuth errors are written (RFC 6749 section 5.2)."""
        status, error, text = 500, "server_error", "the service could not answer"
        if isinstance(problem, TokenRefused):
            status, error, text = status_of(problem), problem.error, str(problem)
            self.claimed = problem.client
            if problem.challenge:
                self.headers["WWW-Authenticate"] = 'Basic realm="fhirpub"'
        elif isinstance(problem, TooLarge):
            status, error = 413, "invalid_request"
            text = f"the request has more than {_MAX_BYTES} bytes"
        elif isinstance(problem, (MalformedRequest, TooSlow)):
            status, error, text = response_for(problem).status, "invalid_request", str(problem)
        elif isinstance(problem, (Throttled, StoreUnavailable)):
            status, error = response_for(problem).status, "temporarily_unavailable"
            text = str(problem)
            self.claimed = problem.client if isinstance(problem, Throttled) else ""
            self.headers["Retry-After"] = str(problem.retry_after)
        self.status = status
        write_oauth(self, {"error": error, "error_description": text})


class TokenHandler(OAuthHandler):
    """Grant an access token for client credentials."""

    action = "token"
    _grant: Grant | None = None

    @property
    def acting(self) -> tuple[str, str] | None:
        """The tenant and the client that get a token."""
        return (self._grant.tenant, self._grant.client) if self._grant else None

    async def post(self) -> None:
        """Grant a token."""
        message, certificate = self.take_message(), self.certificate()
        if certificate is None:
            raise refuse_malformed("the proxy passed on a client certificate that cannot be read")
        self._grant = grant = await self.services.tokens.grant(
            message, address=self.address, certificate=certificate
        )
        answer: dict[str, Any] = {
            "access_token": grant.access_token,
            "token_type": "Bearer",
            "expires_in": grant.expires_in,
        }
        if grant.scope:
            answer["scope"] = grant.scope
        write_oauth(self, answer)


class RevocationHandler(OAuthHandler):
    """Revoke a token of the client (RFC 7009)."""

    action = "token.revoke"
    _client: Client | None = None

    @property
    def acting(self) -> tuple[str, str] | None:
        """The tenant and the client that revoke a token."""
        return (self._client.tenant, self._client.id) if self._client else None

    async def post(self) -> None:
        """Revoke the token; the answer to one that is none is the same (RFC 7009, 2.2)."""
        tokens, message = self.services.tokens, self.take_message()
        self._client = await tokens.revoke(message, address=self.address)
        self.respond_empty(status=200)


def write_oauth(handler: BaseHandler, answer: dict[str, Any]) -> None:
    """Write an answer of OAuth."""
    handler.headers["Content-Type"] = "application/json"
    handler.finish(dumps(answer))


class KeysHandler(BaseHandler):
    """Publish the keys that verify our tokens (RFC 7517)."""

    requires_token = False

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted."""

    def get(self) -> None:
        """Return the key set."""
        self._publish(self.services.tokens.jwks())

    def _publish(self, document: dict[str, Any]) -> None:
        self.headers["Content-Type"] = "application/json"
        self.headers["Cache-Control"] = "public, max-age=300"
        self.finish(dumps(document))


def binding(config: Config) -> dict[str, Any]:
    """Return the metadata about tokens that are bound to certificates (RFC 8705, 3.3)."""
    if not config.server.certificate_header:
        return {}
    return {"tls_client_certificate_bound_access_tokens": True}


class ServerMetadataHandler(KeysHandler):
    """Describe the token endpoint (RFC 8414)."""

    def get(self) -> None:
        """Return the authorization server's metadata."""
        config = self.services.config
        self._publish({**self.services.tokens.metadata(config.base_url), **binding(config)})


class SmartConfigurationHandler(KeysHandler):
    """Describe the token endpoint to SMART clients."""

    def get(self) -> None:
        """Return the SMART configuration."""
        services = self.services
        audited = [AUDIT_EVENT] if services.config.audit.enabled else []
        types = [*services.context.searched, *audited]
        found = services.tokens.smart_configuration(services.config.base_url, types=types)
        self._publish({**found, **binding(services.config)})
