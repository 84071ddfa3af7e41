"""Many persons of one tenant, each with as many passkeys as a person can have."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.clients import NewClient, add_client, update_client
from fhirpub.auth.passkeys import MAX_PASSKEYS
from fhirpub.fhir.strict_json import dumps
from fhirpub.runtime.clock import now_ms
from fhirpub.tenant import Tenant
from fhirpub.testing.service import RunningService


def add_crowd(service: RunningService, tenant: Tenant, number: int) -> None:
    """Add persons."""
    store, environment = service.services.store, service.config.auth.environment
    _private, public = new_key_pair()
    keys = [{**public["keys"][0], "kid": f"passkey:{place}"} for place in range(MAX_PASSKEYS)]
    jwks = dumps({"keys": keys}).decode()

    async def add_all() -> None:
        for place in range(number):
            new = NewClient(
                tenant=tenant.id, name=f"Ada {place}", environment=environment, is_person=True
            )
            client, _secret = await add_client(store, new, clock=now_ms)
            await update_client(store, client.id, lambda one: replace(one, jwks=jwks))

    service.call(add_all())
