"""Operations on the webhook endpoints of all tenants."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from fhirpub.administration.context import Administration
from fhirpub.administration.naming import id_of_key
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.tenants import OF_KEY, OF_TENANT, ONLY_OF_TENANT
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.errors import NoSuchRecord, NotPossible
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.webhook_contract import Endpoint, Ordering, Payload
from fhirpub.webhooks.management import serializers
from fhirpub.webhooks.management.endpoints import (
    EndpointService,
    EndpointWithSecrets,
)

Record = Mapping[str, Any]
T = TypeVar("T")
Act = Callable[[EndpointService, Endpoint], Awaitable[T]]

_MAX_REPLACED = 1_000
OF_ENDPOINT = Parameter(
    name="endpoint",
    text="The endpoint: its id or description.",
    place="path",
    required=True,
)
_URL = Parameter(name="url", text="The URL that receives webhooks.")
_SETTINGS = (
    Parameter(name="description", text="The name that lists show."),
    Parameter(
        name="ordering",
        text="Deliveries that wait for an earlier one: none, those of its resource, or all.",
        choices=typing.get_args(Ordering),
    ),
    Parameter(
        name="payload",
        text="Data of an event: all that the type of the resource defines, or only ids.",
        choices=typing.get_args(Payload),
    ),
    Parameter(
        name="event_types",
        type="strings",
        text="Events to send, such as diagnostic_report.created or *.",
    ),
)
SECRET = Parameter(name="signing_secret", text="An existing signing secret to use.")
TOKEN = Parameter(name="bearer_token", text="An existing token to send.")


async def add(administration: Administration, *, tenant: str, **fields: Any) -> Record:
    """Add an endpoint, with secrets that are shown this once."""
    owner = await administration.tenant(tenant)
    return record_with_secrets(await _add(administration, owner.id, "", fields))


async def put(administration: Administration, *, tenant: str, key: str, **fields: Any) -> Record:
    """Add the endpoint of a tenant with a key, or change it.

    Its secrets are shown when it is added, and never again. One that was removed is replaced.
    """
    owner = await administration.tenant(tenant)
    for number in range(_MAX_REPLACED):
        name = f"{key}\n{number}" if number else key
        endpoint_id = id_of_key("endpoint", name, tenant=owner.id)
        found = await administration.store.endpoint(owner.id, endpoint_id)
        if found is None:
            with suppress(NotPossible):  # another request has added it meanwhile
                return record_with_secrets(
                    await _add(administration, owner.id, endpoint_id, fields)
                )
        if found is None or found.state != "deleted":
            with suppress(NoSuchRecord):  # another request has removed it meanwhile
                return await _change(administration, endpoint_id, fields)
    raise NotPossible(
        f"{_MAX_REPLACED} endpoints with the key {key} were removed: use another key"
    )


async def _add(
    administration: Administration, tenant: str, endpoint_id: str, fields: Record
) -> EndpointWithSecrets:
    await require_enabled_tenant(administration.store, tenant)
    service = await administration.endpoints()
    async with administration.recorded(ADD.audited_as, tenant=tenant) as doing:
        disclosed = await service.add(tenant, fields, trusted=True, endpoint_id=endpoint_id)
        doing.name("Endpoint", disclosed.endpoint.id)
        return disclosed


async def _change(administration: Administration, endpoint_id: str, fields: Record) -> Record:
    """Give an endpoint the settings that are wanted, unless it has them; its secrets stay."""
    found = await administration.endpoint(endpoint_id)
    kept = serializers.endpoint_record(found)
    settings = {name: value for name, value in fields.items() if name in kept}
    if all(kept[name] == value for name, value in settings.items()):
        return record_of(found)
    return await edit(administration, endpoint=endpoint_id, **settings)


async def list_(administration: Administration, *, tenant: str | None = None) -> list[Record]:
    """List endpoints."""
    endpoints = await administration.store.all_endpoints()
    owner = None if tenant is None else (await administration.tenant(tenant)).id
    shown = [one for one in endpoints if one.state != "deleted" and owner in (None, one.tenant)]
    return await in_turns(record_of, shown)


async def show(administration: Administration, *, endpoint: str) -> Record:
    """Return an endpoint, without its secrets."""
    return record_of(await administration.endpoint(endpoint))


async def edit(administration: Administration, *, endpoint: str, **fields: Any) -> Record:
    """Change settings of an endpoint."""
    changed = await act_on(
        administration,
        endpoint,
        SET,
        lambda service, each: service.change(each.tenant, each.id, fields, trusted=True),
    )
    return record_of(changed)


async def remove(administration: Administration, *, endpoint: str) -> Record:
    """Remove an endpoint and its secrets."""

    async def delete(service: EndpointService, each: Endpoint) -> Record:
        await service.delete(each.tenant, each.id)
        return {"id": each.id, "url": each.url, "state": "deleted"}

    return await act_on(administration, endpoint, REMOVE, delete)


async def act_on(
    administration: Administration, named: str, operation: Operation, act: Act[T]
) -> T:
    """Act on an endpoint of any tenant, which is recorded in its tenant's chain."""
    endpoint, service = await administration.endpoint(named), await administration.endpoints()
    what = ("Endpoint", endpoint.id)
    async with administration.recorded(operation.audited_as, what, tenant=endpoint.tenant):
        return await act(service, endpoint)


def record_of(endpoint: Endpoint) -> Record:
    """Return what is shown of an endpoint."""
    record = serializers.endpoint_record(endpoint)
    return {"id": endpoint.id, "tenant": endpoint.tenant, **record}


def record_with_secrets(disclosed: EndpointWithSecrets) -> Record:
    """Return the same with the secrets that are shown only once."""
    made = {"signing_secret": disclosed.signing_secret, "token": disclosed.token}
    shown = {name: text for name, text in made.items() if text}
    return {"id": disclosed.endpoint.id, **shown, **record_of(disclosed.endpoint)}


ADD = Operation(
    command="endpoint add",
    method="POST",
    path="/tenants/{tenant}/endpoints",
    summary="Add an endpoint; its secret and token are in this response only",
    run=add,
    parameters=(OF_TENANT, replace(_URL, required=True), *_SETTINGS, SECRET, TOKEN),
    status=201,
    action="endpoint.create",
)
PUT = Operation(
    command="endpoint add --key",
    method="PUT",
    path="/tenants/{tenant}/endpoints/{key}",
    summary="Add the endpoint with a key of the caller's, or change it; its secrets stay",
    run=put,
    parameters=(OF_TENANT, OF_KEY, replace(_URL, required=True), *_SETTINGS, SECRET, TOKEN),
    action="endpoint.create",
)
LIST = Operation(
    command="endpoint list",
    method="GET",
    path="/endpoints",
    summary="List endpoints, oldest first",
    run=list_,
    parameters=(ONLY_OF_TENANT,),
)
SHOW = Operation(
    command="endpoint show",
    method="GET",
    path="/endpoints/{endpoint}",
    summary="Show an endpoint, without its secrets",
    run=show,
    parameters=(OF_ENDPOINT,),
)
SET = Operation(
    command="endpoint set",
    method="PATCH",
    path="/endpoints/{endpoint}",
    summary="Change settings of an endpoint; event_types replaces all previous ones",
    run=edit,
    parameters=(OF_ENDPOINT, _URL, *_SETTINGS),
    action="endpoint.update",
)
REMOVE = Operation(
    command="endpoint rm",
    method="DELETE",
    path="/endpoints/{endpoint}",
    summary="Remove an endpoint and its secrets; its open deliveries are cancelled",
    run=remove,
    parameters=(OF_ENDPOINT,),
    is_final=True,
    action="endpoint.delete",
)
OPERATIONS = (ADD, PUT, LIST, SHOW, SET, REMOVE)
