"""Operations on quotas: the limits of single tenants and clients, and their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.administration.clients import OF_CLIENT
from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.quota_usage import (
    Owner,
    OwnerState,
    QuotaState,
    states_of,
    states_of_tenant,
)
from fhirpub.administration.tenants import OF_TENANT
from fhirpub.config.reader import LARGEST
from fhirpub.errors import InvalidContent, Issue
from fhirpub.problems import OperationProblem
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.web.admission.quota_policy import Kind, Limits, quota_names

MEANINGS = {
    "requests_per_minute": "Requests per minute.",
    "requests_at_a_time": "Requests in progress at the same time.",
    "bytes_per_day": "Bytes of request bodies per day (UTC).",
    "registrations_per_day": "Registered resources per day (UTC).",
    "stored_bytes": "Bytes of versions and documents in the store; of a tenant only.",
}
_CHANGES = tuple(
    Parameter(name=name, type="integer", text=MEANINGS[name], minimum=0, maximum=LARGEST)
    for name in Limits._fields
)
_DEFAULTS = Parameter(
    name="defaults",
    type="strings",
    text="Names of limits that are removed, so that those of [quotas] apply again.",
)


async def set_of_tenant(
    administration: Administration, *, tenant: str, **limits: Any
) -> Mapping[str, Any]:
    """Set limits of a tenant."""
    found = await administration.tenant(tenant)
    owner = Owner("tenant", found.id, found.name)
    return await _set(administration, owner, found.id, limits)


async def set_of_client(
    administration: Administration, *, client: str, **limits: Any
) -> Mapping[str, Any]:
    """Set limits of a client."""
    found = await administration.client(client)
    owner = Owner("client", found.id, found.name)
    return await _set(administration, owner, found.tenant, limits)


async def _set(
    administration: Administration, owner: Owner, tenant: str, limits: dict[str, Any]
) -> Mapping[str, Any]:
    store, what = administration.store, (owner.kind.capitalize(), owner.id)
    overrides = _overrides(owner.kind, owner.id, limits)
    async with administration.recorded("quota.set", what, tenant=tenant):
        await store.put_quota_overrides(overrides)
    config = administration.config.quotas
    (state,) = await states_of(store, [owner], config, now=administration.clock())
    return {owner.kind: owner.id, **{one.limit_name: _shown(one) for one in state.quotas}}


def _overrides(kind: Kind, owner: str, limits: dict[str, Any]) -> list[QuotaOverride]:
    defaults = limits.pop("defaults", ())
    given: dict[str, int | None] = {**limits, **dict.fromkeys(defaults)}
    names = quota_names(kind)
    rule = f"is not a limit of a {kind}; those are {', '.join(names)}"
    unknown = [
        Issue.error(OperationProblem.FIELD_UNKNOWN, rule, name)
        for name in given
        if name not in names
    ]
    if not given:
        unknown = [Issue.error(OperationProblem.FIELD_REQUIRED, "name at least one limit")]
    if unknown:
        raise InvalidContent(unknown)
    return [QuotaOverride(owner, names[name], limit) for name, limit in given.items()]


async def show(administration: Administration, *, tenant: str) -> Mapping[str, Any]:
    """Return the limits of a tenant and of its clients, and what is used of them."""
    found = await administration.tenant(tenant)
    states = await states_of_tenant(
        administration.store,
        found.id,
        administration.config.quotas,
        now=administration.clock(),
    )
    first, *others = await in_turns(_record, states)
    return {**first, "clients": others}


def _shown(item: QuotaState) -> int | None:
    return item.limit or None


def _record(state: OwnerState) -> Mapping[str, Any]:
    key = "tenant" if state.kind == "tenant" else "client_id"
    quotas = [
        {
            "quota": item.limit_name,
            "limit": _shown(item),
            "set_by": "quota set" if item.is_override else "[quotas]",
            "used": item.used,
        }
        for item in state.quotas
    ]
    return {key: state.id, "name": state.name, "quotas": quotas}


SET_OF_TENANT = Operation(
    command="quota set --tenant",
    method="PATCH",
    path="/tenants/{tenant}/quotas",
    summary="Set limits of a tenant, instead of those of [quotas]; 0 means no limit",
    run=set_of_tenant,
    parameters=(OF_TENANT, *_CHANGES, _DEFAULTS),
)
SET_OF_CLIENT = Operation(
    command="quota set --client",
    method="PATCH",
    path="/clients/{client}/quotas",
    summary="Set limits of a client, instead of those of [quotas]; 0 means no limit",
    run=set_of_client,
    parameters=(OF_CLIENT, *_CHANGES[:-1], _DEFAULTS),
)
SHOW = Operation(
    command="quota show",
    method="GET",
    path="/tenants/{tenant}/quotas",
    summary="Show the limits of a tenant and of its clients, and what is used of them",
    run=show,
    parameters=(OF_TENANT,),
)
OPERATIONS = (SET_OF_TENANT, SET_OF_CLIENT, SHOW)
