"""The base of all handlers: the callers that they allow."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import ClassVar

from fhirpub.auth import refusals
from fhirpub.auth.caller import Caller
from fhirpub.auth.scopes import permits
from fhirpub.errors import NotPermitted
from fhirpub.web.error_mapping import AddressNotPermitted
from fhirpub.web.handlers.responses import ResponseWriter


class BaseHandler(ResponseWriter):
    """A handler of one request. ``requires_token`` must be stated by each class.

    Its methods are named after those of HTTP (``get`` serves HEAD as well) and take the
    parameters of the path.
    """

    requires_token: ClassVar[bool]
    scope: ClassVar[str] = ""
    """Letters of the SMART scopes that the interaction needs: c, r, u and s."""
    scope_is_always_needed: ClassVar[bool] = False
    """The scope is needed even where ``[auth] enforce_scopes`` is off."""
    belongs_to_others: ClassVar[bool] = False
    """The resource came with another one: the right to read that one's type is enough."""
    conditions: ClassVar[frozenset[str]] = frozenset()
    """The headers of conditions that the interaction evaluates, of those a batch can state."""
    is_counted: ClassVar[bool] = True
    """Whether a request with a token is subject to quotas."""
    authenticated: Caller | None = None
    """The caller, if it was authenticated otherwise than by a token (ADR 46)."""

    def prepare(self) -> Awaitable[None] | None:
        """Check the token, then the format; at once if the token is known already."""
        if not self.requires_token:
            return self.ready()
        caller = self.authenticated
        if caller is None:
            sent = self.request.headers.get_list("Authorization")
            caller = self.services.tokens.cached_caller(sent[0]) if len(sent) == 1 else None
            if caller is None:
                return self._authenticate(sent)
        self.caller = caller
        return self.ready()

    async def _authenticate(self, sent: Sequence[str]) -> None:
        self.caller = await self.services.tokens.caller(sent)
        if self._answered:  # the body timed out in the meantime: reserve nothing
            return
        later = self.ready()
        if later is not None:
            await later

    def ready(self) -> Awaitable[None] | None:
        """Continue once the caller is authenticated."""
        if self.requires_token:
            if self.caller.networks:
                self._check_address()
            if self.caller.certificate and self.caller.certificate != self.certificate():
                self.claimed = self.caller.client_id
                del self.caller
                raise refusals.unbound()
            self.services.rate_limit.count(self.caller.client_id)
            if self.services.quotas.active and self.is_counted:
                self._enter_quotas()
            if self.enforces_scopes and not self.is_permitted():
                raise NotPermitted(self.needed_scope())
        self.check_format()
        return None

    def certificate(self) -> str | None:
        """Return the digest of the client's certificate, empty if there is none.

        None if what the proxy sent cannot be read.
        """
        server = self.services.config.server
        return self.request.client_certificate(server.certificate_header, server.trusted_proxies)

    def _check_address(self) -> None:
        """Raise AddressNotPermitted for a request from outside of its caller's networks.

        It then has no caller: its log lines are sampled like those without a token (D-300).
        """
        caller, trusted = self.caller, self.services.config.server.trusted_proxies
        address = self.request.client_address(trusted)
        if not caller.may_call_from(address):
            self.claimed = caller.client_id
            del self.caller
            raise AddressNotPermitted(caller.client_id, address)

    def _enter_quotas(self) -> None:
        """Count the request; raises QuotaExceeded if it is beyond a quota of its caller."""
        self.ticket = self.services.quotas.ticket(self.caller, self.services.ticket_type)
        if self.ticket is not None:
            self.ticket.enter()

    @property
    def enforces_scopes(self) -> bool:
        """Whether the scopes of the token count here."""
        enforced = self.scope_is_always_needed or self.services.config.auth.enforce_scopes
        return enforced or self.caller.scopes_count

    def is_permitted(self) -> bool:
        """Return whether the scopes of the token allow this."""
        return all(map(self.may, self.scope))

    def needed_scope(self) -> str:
        """Return the scope that the token has to have; empty if it has no name."""
        return f"system/{self.type_name}.{self.scope}" if self.type_name else ""

    def may(self, letter: str) -> bool:
        """Return whether the caller may create, read, update or search here."""
        others = self.services.types if self.belongs_to_others else ()
        return self.may_with(letter, (self.type_name, *others))

    def may_with(self, letter: str, types: Iterable[str]) -> bool:
        """Return whether the caller may do so with resources of any of these types."""
        scopes = self.caller.scopes
        return not self.enforces_scopes or any(
            permits(scopes, type_name, letter) for type_name in types
        )
