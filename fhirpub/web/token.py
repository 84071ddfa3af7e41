"""POST /oauth/token and what clients need to know about tokens (RFC 6749, 7517, 8414)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tornado.web import RequestHandler, stream_request_body

from fhirpub.errors import StoreUnavailable, Throttled, TokenRefused, TooLarge
from fhirpub.fhir.strict_json import dumps
from fhirpub.web.base import BaseHandler, BodyHandler
from fhirpub.web.error_mapping import status_of

_MOST_BYTES = 8192


@stream_request_body  # Tornado would read a form by its own rules
class TokenHandler(BodyHandler):
    """Grant an access token for client credentials."""

    streams = True
    requires_token = False

    def set_default_headers(self) -> None:
        """Keep tokens and refusals out of caches (RFC 6749 section 5.1)."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("Pragma", "no-cache")

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted, as OAuth does."""

    def check_content_type(self) -> None:
        """Leave the type of the body to the token request: 400, not 415 (D-28)."""

    def most_bytes(self) -> int:
        """Return how large a token request may be."""
        return _MOST_BYTES

    async def post(self) -> None:
        """Grant a token."""
        grant = await self.services.tokens.grant(
            content_type=self.request.headers.get("Content-Type", ""),
            body=self.take_body(),
            authorization=self.request.headers.get_list("Authorization"),
            address=self.client_address,
            query=self.request.query,
        )
        answer: dict[str, Any] = {
            "access_token": grant.access_token,
            "token_type": "Bearer",
            "expires_in": grant.expires_in,
        }
        if grant.scope:
            answer["scope"] = grant.scope
        _write(self, answer)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write a refusal as OAuth errors are written (RFC 6749 section 5.2)."""
        problem = kwargs.get("exc_info", (None, None, None))[1]
        error, text = "invalid_request", "the request could not be read"
        if isinstance(problem, TokenRefused):
            status_code, error, text = status_of(problem), problem.error, str(problem)
            if problem.challenge:
                self.set_header("WWW-Authenticate", 'Basic realm="fhirpub"')
        elif isinstance(problem, TooLarge):
            status_code, text = 413, f"the request has more than {_MOST_BYTES} bytes"
        elif isinstance(problem, Throttled):
            status_code, error, text = 429, "temporarily_unavailable", str(problem)
            self.set_header("Retry-After", str(problem.retry_after))
        elif isinstance(problem, StoreUnavailable):
            status_code, error, text = 503, "temporarily_unavailable", str(problem)
            self.set_header("Retry-After", str(problem.retry_after))
        elif status_code >= 500:
            error, text = "server_error", "the service could not answer"
        self.set_status(status_code)
        _write(self, {"error": error, "error_description": text})


def write_method_not_allowed(handler: RequestHandler) -> None:
    """Refuse a method at the token endpoint as OAuth errors are written (D-142)."""
    handler.set_status(HTTPStatus.METHOD_NOT_ALLOWED)
    handler.set_header("Cache-Control", "no-store")
    _write(handler, {"error": "invalid_request", "error_description": "use POST here"})


def _write(handler: RequestHandler, answer: dict[str, Any]) -> None:
    handler.set_header("Content-Type", "application/json")
    handler.finish(dumps(answer))


class KeysHandler(BaseHandler):
    """Publish the keys that verify our tokens (RFC 7517)."""

    requires_token = False

    def check_format(self) -> None:
        """Answer in JSON whatever is accepted."""

    def get(self) -> None:
        """Return the key set."""
        self._publish(self.services.tokens.jwks())

    head = get

    def _publish(self, document: dict[str, Any]) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "public, max-age=300")
        self.finish(dumps(document))


class ServerMetadataHandler(KeysHandler):
    """Describe the token endpoint (RFC 8414)."""

    def get(self) -> None:
        """Return the authorization server's metadata."""
        self._publish(self.services.tokens.metadata(self.services.config.base_url))

    head = get


class SmartConfigurationHandler(KeysHandler):
    """Describe the token endpoint to SMART clients."""

    def get(self) -> None:
        """Return the SMART configuration."""
        self._publish(self.services.tokens.smart_configuration(self.services.config.base_url))

    head = get
