"""Which client sent a request: it proves that by a secret, or by an assertion (RFC 7523)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.auth.assertions.key_set import PublicKey, read_key_set
from fhirpub.auth.assertions.published_keys import Fetch, KeysNotFetched, PublishedKeys
from fhirpub.auth.assertions.single_use import use_once
from fhirpub.auth.assertions.verification import (
    AssertionRefused,
    OpenedAssertion,
    verify_assertion,
)
from fhirpub.auth.clients import UNKNOWN_CLIENT, authenticate, is_admitted
from fhirpub.auth.networks import is_within, parse_networks
from fhirpub.auth.throttle import Throttle
from fhirpub.auth.token_request import (
    Credentials,
    Proof,
    refuse_assertion,
    refuse_credentials,
)
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import Throttled, TokenRefused
from fhirpub.plugin_api.issuers import TokenIssuer
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import Client, CredentialStore

_log = logger()


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The URL that assertions are for, and how the key sets are got that clients publish.

    ``issuers`` are the others whose tokens are accepted; their keys are got alike.
    """

    url: str
    fetch: Fetch
    issuers: Sequence[TokenIssuer] = ()


class ClientAuthentication:
    """Finds out which client sent a request, and slows down guesses.

    ``audiences`` are what an assertion may be for, ``fetch`` gets the key sets of clients that
    publish them.
    """

    def __init__(
        self,
        access: CredentialStore,
        *,
        config: AuthConfig,
        limits: LimitsConfig,
        audiences: Sequence[str],
        fetch: Fetch | None,
        clock: Clock,
    ) -> None:
        self._access = access
        self._config = config
        self._audiences = audiences
        self._clock = clock
        self._throttle = Throttle(limits.token_failures, clock=clock)
        self._published = None if fetch is None else PublishedKeys(fetch, clock=clock)

    async def stop(self) -> None:
        """End the fetches of key sets."""
        if self._published is not None:
            await self._published.stop()

    async def prove(self, proof: Proof, address: str, *, audiences: Sequence[str] = ()) -> Client:
        """Return the client that a request comes from, if the address is within its networks.

        ``audiences`` are what an assertion may be for, by default those of tokens. Raises
        TokenRefused, Throttled, StoreUnavailable.
        """
        claimed = proof.client_id if isinstance(proof, Credentials) else proof.subject
        try:
            async with self._throttle.attempt(claimed, address):
                client = await self._proved(proof, audiences or self._audiences)
        except Throttled as refusal:
            refusal.client = claimed
            raise
        if client.networks and not is_within(address, parse_networks(client.networks)):
            _log.warning("address not permitted", client_id=client.id, address=address)
            rule = "the client may not call from this address: ask the operator"
            raise TokenRefused("unauthorized_client", rule, client=client.id)
        return client

    async def _proved(self, proof: Proof, audiences: Sequence[str]) -> Client:
        if isinstance(proof, Credentials):
            return await self._by_secret(proof)
        return await self._by_assertion(proof, audiences)

    async def _by_secret(self, credentials: Credentials) -> Client:
        proved = await authenticate(
            self._access,
            credentials.client_id,
            credentials.client_secret,
            environment=self._config.environment,
            clock=self._clock,
        )
        if proved is None:
            raise refuse_credentials(basic=credentials.basic, client=credentials.client_id)
        return proved[0]

    async def _by_assertion(self, opened: OpenedAssertion, audiences: Sequence[str]) -> Client:
        """Return the client that signed an assertion, which is accepted this once.

        One without a usable key, such as an unknown or disabled one, is refused like a wrong
        signature.
        """
        client = await self._access.client(opened.subject) or UNKNOWN_CLIENT
        try:
            keys = await self._keys(client, opened.kid)
            stated = verify_assertion(
                opened,
                keys,
                audiences=audiences,
                clock=self._clock,
                leeway_seconds=self._config.leeway_seconds,
            )
            await use_once(self._access, stated, owner=stated.subject, clock=self._clock)
        except AssertionRefused as refusal:
            raise refuse_assertion(str(refusal), client=opened.subject) from None
        except KeysNotFetched:
            said = "cannot be verified: the JWKS URL of the client leads to no key set now"
            raise refuse_assertion(said, client=opened.subject) from None
        return client

    async def _keys(self, client: Client, kid: str) -> Sequence[PublicKey]:
        tenant = await self._access.tenant(client.tenant)
        if not is_admitted(client, tenant, environment=self._config.environment):
            return ()
        if client.jwks:
            return [key for key in read_key_set(client.jwks.encode()) if not key.is_passkey]
        if client.jwks_url and self._published is not None:
            return await self._published.at(client.jwks_url, tenant=client.tenant, kid=kid)
        return ()
