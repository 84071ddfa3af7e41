"""Administration of endpoints, shared by the HTTP API and the command line.

Every method takes the tenant first. An endpoint of another tenant is one that does not exist.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule, NoSuchRecord, NotPossible, StoreUnavailable
from fhirpub.problems import OperationProblem
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management import endpoint_states as states
from fhirpub.webhooks.management import validation as registration
from fhirpub.webhooks.management.endpoint_secrets import (
    encrypt_secret,
    new_token,
    reencrypt,
    with_new_secret,
)
from fhirpub.webhooks.management.event_types import TEST, EventTypes
from fhirpub.webhooks.management.pull_endpoints import refuse_other_transport
from fhirpub.webhooks.management.samples import Samples
from fhirpub.webhooks.management.trials import TestDelivery, Trials
from fhirpub.webhooks.policy.endpoint_health import NEW_HEALTH
from fhirpub.webhooks.transport.pull_url import is_pull
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import new_secret

USUAL_GRACE_SECONDS = 86_400
NO_FIELDS: Mapping[str, Any] = MappingProxyType({})

_RACES = 20

_log = logger()

Check = Callable[[int], None]
"""Raises VersionConflict unless a revision is the one that the caller means."""

Step = Callable[[Endpoint], Endpoint]


def any_revision(_revision: int) -> None:
    """Take an endpoint as it is."""


@dataclass(frozen=True, slots=True)
class EndpointWithSecrets:
    """An endpoint with what is shown this once; empty is what was not made now."""

    endpoint: Endpoint
    signing_secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


class EndpointService:
    """Adds, changes, tries and removes endpoints."""

    def __init__(
        self,
        *,
        store: Store,
        sender: Sender,
        seal: SecretCipher,
        event_types: EventTypes,
        config: Config,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sender = sender
        self._seal = seal
        self._config = config
        self._clock = clock
        samples = Samples(event_types, base_url=config.base_url, clock=clock)
        self._trials = Trials(
            sender=sender, seal=seal, samples=samples, config=config, clock=clock
        )
        self._adding = asyncio.Lock()
        self.event_types = event_types

    # What there is.

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint:
        """Return an endpoint. Raises NoSuchRecord, also for one that was deleted."""
        endpoint = await self._store.endpoint(tenant, endpoint_id)
        if endpoint is None or endpoint.state == "deleted":
            raise NoSuchRecord("endpoint", endpoint_id)
        return endpoint

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        """Return the endpoints of a tenant, oldest first."""
        endpoints = await self._store.endpoints(tenant)
        return [endpoint for endpoint in endpoints if endpoint.state != "deleted"]

    # What changes them.

    async def add(
        self, tenant: str, fields: Any, *, trusted: bool = False, endpoint_id: str = ""
    ) -> EndpointWithSecrets:
        """Add an endpoint with its secrets, and with a fresh id unless one is given.

        ``fields`` are those of :data:`registration.NEW`, ``url`` at least. Unless ``trusted`` it
        has to be verified before anything else is sent there (ADR 20). Raises InvalidContent,
        BrokenRule, SecretsUnavailable, and NotPossible if there is one with the id.
        """
        if isinstance(fields, Mapping):
            fields = {"url": None, **fields}
        values = await self._validate(tenant, fields, registration.NEW, trusted=trusted)
        endpoint_id = endpoint_id or str(uuid.uuid4())
        secret = values.get("signing_secret") or new_secret()
        token = values.get("bearer_token") or new_token()
        endpoint = Endpoint(
            id=endpoint_id,
            tenant=tenant,
            created=self._clock(),
            state=states.first_state(values["url"], trusted=trusted),
            secrets=(encrypt_secret(endpoint_id, secret, self._seal),),
            token=self._seal.encrypt(token, endpoint=endpoint_id, purpose="token"),
            **registration.settings_of(values),
        )
        async with self._adding:  # one after the other, so that all are counted
            most = self._config.webhooks.endpoints_per_tenant
            if len(await self.endpoints(tenant)) >= most:
                rule = f"a tenant has at most {most} endpoints; remove one first"
                raise BrokenRule.because(rule, details=OperationProblem.ENDPOINTS_TOO_MANY)
            if not await self._store.put_endpoint(tenant, endpoint):
                raise NotPossible(f"there is an endpoint {endpoint_id} already")
        _log.info("endpoint added", endpoint=endpoint_id, tenant=tenant)
        return EndpointWithSecrets(endpoint, secret, token)

    async def change(
        self,
        tenant: str,
        endpoint_id: str,
        fields: Any,
        *,
        check: Check = any_revision,
        trusted: bool = False,
    ) -> Endpoint:
        """Change fields of :data:`registration.CHANGEABLE`.

        At another URL it has to be verified again, whatever its state, unless ``trusted``;
        what the operator has disabled before it is enabled. Raises NoSuchRecord, VersionConflict,
        InvalidContent.
        """
        before = await self.endpoint(tenant, endpoint_id)
        check(before.revision)
        settings = registration.settings_of(
            await self._validate(tenant, fields, registration.CHANGEABLE, trusted=trusted)
        )
        refuse_other_transport(before, settings.get("url", before.url))

        def changed(endpoint: Endpoint) -> Endpoint:
            after = replace(endpoint, **settings)
            return after if trusted or after.url == endpoint.url else states.moved(after)

        after = await self._put(tenant, endpoint_id, changed, check=check)
        if after.url != before.url:  # a new receiver has no history
            await self._store.save_health(endpoint_id, NEW_HEALTH)
        return after

    async def delete(self, tenant: str, endpoint_id: str, *, check: Check = any_revision) -> None:
        """Remove an endpoint with its secrets; what is not delivered yet never will be."""
        await self._put(tenant, endpoint_id, states.deleted, check=check)

    async def pause(self, tenant: str, endpoint_id: str) -> Endpoint:
        """Hold what is to be delivered, until the endpoint is enabled."""
        return await self._put(tenant, endpoint_id, states.paused)

    async def disable(self, tenant: str, endpoint_id: str) -> Endpoint:
        """Hold what is to be delivered, until the operator enables the endpoint."""
        return await self._put(tenant, endpoint_id, states.disabled)

    async def enable(self, tenant: str, endpoint_id: str, *, operator: bool = False) -> Endpoint:
        """Go on with a paused endpoint, or with a disabled one once it has taken a test event.

        One that was not verified before it was disabled has to be verified then. Raises
        BrokenRule: it is to be verified first, it fails the test, or only the operator may.
        """
        endpoint = await self.endpoint(tenant, endpoint_id)
        if endpoint.state == "unverified":
            raise states.refuse_state("is unverified; verify it first")
        if endpoint.state != "disabled":
            states.refuse_unsent(endpoint)
        else:
            states.require_permission(endpoint, operator=operator)
            if endpoint.why != states.UNPROVEN and not is_pull(endpoint.url):
                await self._expect_health(endpoint, operator=operator)
        enabled = partial(states.enabled, known=endpoint, operator=operator)
        return await self._put(tenant, endpoint_id, enabled)

    async def rotate_secret(
        self, tenant: str, endpoint_id: str, fields: Any
    ) -> EndpointWithSecrets:
        """Add a signing secret, given or generated; earlier ones stay valid for a grace period.

        ``fields`` are those of :data:`registration.NEW_SECRET`: for ``grace_seconds``, by default
        a day, what is sent is signed with both; 0 ends the others at once. One that an earlier
        rotation has replaced keeps its own end otherwise. Raises
        InvalidContent, BrokenRule if more than 5 would be left.
        """
        values = await self._validate(tenant, fields, registration.NEW_SECRET)
        grace = values.get("grace_seconds", USUAL_GRACE_SECONDS)
        now, new = self._clock(), values.get("signing_secret") or new_secret()
        sealed = encrypt_secret(endpoint_id, new, self._seal)

        def rotated(endpoint: Endpoint) -> Endpoint:
            return with_new_secret(endpoint, sealed, now=now, end=now + grace * 1000)

        return EndpointWithSecrets(
            await self._put(tenant, endpoint_id, rotated), signing_secret=new
        )

    async def rotate_token(
        self, tenant: str, endpoint_id: str, fields: Any
    ) -> EndpointWithSecrets:
        """Send another token from now on, one that is given or one made here.

        ``fields`` are those of :data:`registration.NEW_TOKEN`. Raises InvalidContent.
        """
        values = await self._validate(tenant, fields, registration.NEW_TOKEN)
        new = values.get("bearer_token") or new_token()
        sealed = self._seal.encrypt(new, endpoint=endpoint_id, purpose="token")
        changed = await self._put(tenant, endpoint_id, lambda each: replace(each, token=sealed))
        return EndpointWithSecrets(changed, token=new)

    async def reseal(self, tenant: str) -> int:
        """Encrypt a tenant's secrets under the first key; return how many endpoints it was for.

        Raises SecretsUnavailable if one is of a key that is not here.
        """
        changed = 0
        for endpoint in await self.endpoints(tenant):
            if self.is_old(endpoint):
                await self._put(tenant, endpoint.id, partial(reencrypt, seal=self._seal))
                changed += 1
        return changed

    def is_old(self, endpoint: Endpoint) -> bool:
        """Return whether an endpoint has a secret that is not encrypted under the first key."""
        sealed = [endpoint.token, *(secret.sealed for secret in endpoint.secrets)]
        return endpoint.state != "deleted" and not all(map(self._seal.is_of_first, sealed))

    # What tries them.

    def admit_trial(self, tenant: str) -> AbstractContextManager[None]:
        """Count a test or a challenge of a tenant while it lasts. Raises Throttled.

        For a caller that has more to do than to send it; it says so (``admitted``).
        """
        return self._trials.admit(tenant)

    async def test(
        self,
        tenant: str,
        endpoint_id: str,
        fields: Any = NO_FIELDS,
        *,
        operator: bool = False,
        admitted: bool = False,
    ) -> TestDelivery:
        """Send a test event once, at once, and return what came of it.

        ``fields`` are those of :data:`registration.TEST`: of the event ``event_type`` a sample is
        sent, by default one of `endpoint.test`. An endpoint that has not passed its challenge gets
        the challenge instead. For the ``operator`` nothing is withheld. Raises NoSuchRecord,
        InvalidContent, BrokenRule, Throttled.
        """
        with nullcontext() if admitted else self.admit_trial(tenant):
            endpoint = await self.endpoint(tenant, endpoint_id)
            values = await self._validate(tenant, fields, registration.TEST)
            states.refuse_unsent(endpoint)
            if states.is_verified(endpoint):
                event_type = values.get("event_type", TEST)
                return await self._trials.send_test(endpoint, event_type, operator=operator)
            challenge = await self._challenge(endpoint, operator=operator)
            return replace(challenge, replaces_test=True)

    async def verify(
        self, tenant: str, endpoint_id: str, *, operator: bool = False, admitted: bool = False
    ) -> TestDelivery:
        """Send a challenge; an endpoint whose 2xx answer repeats it is verified.

        For the ``operator`` nothing is withheld. Raises NoSuchRecord, BrokenRule, Throttled.
        """
        with nullcontext() if admitted else self.admit_trial(tenant):
            endpoint = await self.endpoint(tenant, endpoint_id)
            states.refuse_unsent(endpoint)
            return await self._challenge(endpoint, operator=operator)

    # How.

    async def _challenge(self, endpoint: Endpoint, *, operator: bool) -> TestDelivery:
        trial = await self._trials.send_challenge(endpoint, operator=operator)
        if not trial.passed:
            return trial
        verified = partial(states.verified, url=endpoint.url)
        return replace(trial, endpoint=await self._put(endpoint.tenant, endpoint.id, verified))

    async def _validate(
        self, tenant: str, fields: Any, known: Sequence[str], *, trusted: bool = False
    ) -> dict[str, Any]:
        return await registration.validate_endpoint(
            fields,
            known=known,
            tenant=tenant,
            sender=self._sender,
            event_types=self.event_types,
            trusted=trusted,
        )

    async def _put(
        self, tenant: str, endpoint_id: str, step: Step, *, check: Check = any_revision
    ) -> Endpoint:
        """Apply a change to the current endpoint, again after each lost race."""
        for _race in range(_RACES):
            endpoint = await self.endpoint(tenant, endpoint_id)
            check(endpoint.revision)
            after = step(endpoint)
            if after == endpoint:
                return endpoint
            after = replace(after, revision=endpoint.revision + 1)
            if await self._store.put_endpoint(tenant, after):
                _log.info(
                    "endpoint changed", endpoint=endpoint_id, tenant=tenant, state=after.state
                )
                return after
        raise StoreUnavailable(f"lost {_RACES} races for the next revision of an endpoint")

    async def _expect_health(self, endpoint: Endpoint, *, operator: bool) -> None:
        with self.admit_trial(endpoint.tenant):
            await self._trials.require_success(endpoint, operator=operator)
        await self._store.save_health(endpoint.id, NEW_HEALTH)
