"""Operations that try an endpoint, rotate its secrets, and change its state."""

from __future__ import annotations

from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.endpoints import (
    OF_ENDPOINT,
    SECRET,
    TOKEN,
    Record,
    act_on,
    record_of,
    record_with_secrets,
)
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management import serializers
from fhirpub.webhooks.management.endpoints import USUAL_GRACE_SECONDS, EndpointService
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS


async def test(administration: Administration, *, endpoint: str) -> Record:
    """Send a test event."""
    trial = await act_on(
        administration,
        endpoint,
        PING,
        lambda service, each: service.test(each.tenant, each.id, operator=True),
    )
    return serializers.trial_record(trial)


async def verify(administration: Administration, *, endpoint: str) -> Record:
    """Send a challenge."""
    trial = await act_on(
        administration,
        endpoint,
        VERIFY,
        lambda service, each: service.verify(each.tenant, each.id, operator=True),
    )
    return serializers.trial_record(trial)


async def rotate_secret(administration: Administration, *, endpoint: str, **fields: Any) -> Record:
    """Add a signing secret, which is shown this once."""
    rotated = await act_on(
        administration,
        endpoint,
        ROTATE,
        lambda service, each: service.rotate_secret(each.tenant, each.id, fields),
    )
    return record_with_secrets(rotated)


async def rotate_token(administration: Administration, *, endpoint: str, **fields: Any) -> Record:
    """Replace the token, which is shown this once."""
    rotated = await act_on(
        administration,
        endpoint,
        ROTATE_TOKEN,
        lambda service, each: service.rotate_token(each.tenant, each.id, fields),
    )
    return record_with_secrets(rotated)


async def enable(administration: Administration, *, endpoint: str) -> Record:
    """Enable an endpoint."""

    async def enable(service: EndpointService, each: Endpoint) -> Endpoint:
        await require_enabled_tenant(administration.store, each.tenant)
        return await service.enable(each.tenant, each.id, operator=True)

    return record_of(await act_on(administration, endpoint, ENABLE, enable))


async def pause(administration: Administration, *, endpoint: str) -> Record:
    """Pause an endpoint."""
    paused = await act_on(
        administration, endpoint, PAUSE, lambda service, each: service.pause(each.tenant, each.id)
    )
    return record_of(paused)


async def disable(administration: Administration, *, endpoint: str) -> Record:
    """Disable an endpoint."""
    disabled = await act_on(
        administration,
        endpoint,
        DISABLE,
        lambda service, each: service.disable(each.tenant, each.id),
    )
    return record_of(disabled)


async def stats(administration: Administration, *, endpoint: str) -> Record:
    """Return delivery statistics of an endpoint."""
    found = await administration.endpoint(endpoint)
    return serializers.stats_record(await administration.deliveries.stats(found), found)


async def reseal(administration: Administration) -> Record:
    """Encrypt the secrets of all endpoints under the first key."""
    service, tenants = await administration.endpoints(), await administration.store.tenants()
    async with administration.recorded(RESEAL.audited_as):
        return {"resealed": sum([await service.reseal(tenant.id) for tenant in tenants])}


PING = Operation(
    command="endpoint ping",
    method="POST",
    path="/endpoints/{endpoint}/test",
    summary="Send a test event, or the challenge to an endpoint that has not passed it",
    run=test,
    parameters=(OF_ENDPOINT,),
    action="endpoint.test",
)
VERIFY = Operation(
    command="endpoint verify-endpoint",
    method="POST",
    path="/endpoints/{endpoint}/verify",
    summary="Send a challenge that the endpoint must repeat",
    run=verify,
    parameters=(OF_ENDPOINT,),
    action="endpoint.verify",
)
ROTATE = Operation(
    command="endpoint rotate",
    method="POST",
    path="/endpoints/{endpoint}/rotate-secret",
    summary="Create a new signing secret; the old one also signs for a while",
    run=rotate_secret,
    parameters=(
        OF_ENDPOINT,
        Parameter(
            name="grace_seconds",
            type="integer",
            text=f"Seconds for which the old secret also signs; default: {USUAL_GRACE_SECONDS}.",
            minimum=0,
            maximum=MAX_GRACE_SECONDS,
        ),
        SECRET,
    ),
    action="endpoint.secret.rotate",
)
ROTATE_TOKEN = Operation(
    command="endpoint rotate-token",
    method="POST",
    path="/endpoints/{endpoint}/rotate-token",
    summary="Replace the token; the old one is no longer sent",
    run=rotate_token,
    parameters=(OF_ENDPOINT, TOKEN),
    action="endpoint.token.rotate",
)
ENABLE = Operation(
    command="endpoint enable",
    method="POST",
    path="/endpoints/{endpoint}/enable",
    summary="Enable an endpoint; a disabled one must first accept a test event",
    run=enable,
    parameters=(OF_ENDPOINT,),
)
PAUSE = Operation(
    command="endpoint pause",
    method="POST",
    path="/endpoints/{endpoint}/pause",
    summary="Hold the deliveries of an endpoint until it is enabled",
    run=pause,
    parameters=(OF_ENDPOINT,),
)
DISABLE = Operation(
    command="endpoint disable",
    method="POST",
    path="/endpoints/{endpoint}/disable",
    summary="Hold the deliveries of an endpoint; its tenant cannot enable it",
    run=disable,
    parameters=(OF_ENDPOINT,),
)
STATS = Operation(
    command="endpoint stats",
    method="GET",
    path="/endpoints/{endpoint}/stats",
    summary="Show delivery statistics: attempts of the last day, backlog, failures",
    run=stats,
    parameters=(OF_ENDPOINT,),
)
RESEAL = Operation(
    command="endpoint reseal",
    method="POST",
    path="/endpoints/reseal",
    summary="Encrypt the secrets of all endpoints under the first key",
    run=reseal,
)
OPERATIONS = (PING, VERIFY, ROTATE, ROTATE_TOKEN, ENABLE, PAUSE, DISABLE, STATS, RESEAL)
