"""Operations on clients, the credentials of applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fhirpub.administration.client_keys import JWKS, JWKS_URL, keys_given, shown_keys
from fhirpub.administration.context import Administration
from fhirpub.administration.naming import id_of_key
from fhirpub.administration.operation import Operation, Parameter, why_no_line
from fhirpub.administration.tenants import OF_KEY, OF_TENANT, ONLY_OF_TENANT
from fhirpub.auth import clients
from fhirpub.config.loader import MAX_SECRET_DAYS
from fhirpub.config.reader import LARGEST
from fhirpub.errors import NotPossible
from fhirpub.fhir.times import instant
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.contract import Client

OF_CLIENT = Parameter(
    name="client", text="The client: its id or name.", place="path", required=True
)
NAME = Parameter(name="name", text="The name that lists show.", max_length=200, rule=why_no_line)
SCOPES_GRANTED = Parameter(name="scopes", type="strings", text="The scopes that are granted.")
NETWORKS = Parameter(
    name="networks",
    type="strings",
    text="Networks from which the client may call, such as 192.0.2.0/24; none: from everywhere.",
    max_length=100,
)
_VALID_DAYS = Parameter(
    name="valid_days",
    type="integer",
    text="Days for which a new secret is valid, 0: until it is rotated. Default: [auth] "
    "secret_days.",
    minimum=0,
    maximum=MAX_SECRET_DAYS,
)


async def add(administration: Administration, *, tenant: str, **given: Any) -> Mapping[str, Any]:
    """Add a client, with a secret that is shown this once."""
    owner = await administration.tenant(tenant)
    return await _add(administration, owner.id, "", given)


async def put(
    administration: Administration, *, tenant: str, key: str, **given: Any
) -> Mapping[str, Any]:
    """Add the client of a tenant with a key, or change it.

    Its secret is shown when it is added, and never again. Raises NotPossible if it is disabled.
    """
    owner = await administration.tenant(tenant)
    client_id = id_of_key("client", key, tenant=owner.id)
    if await administration.store.client(client_id) is None:
        with suppress(NotPossible):  # another request has added it meanwhile
            return await _add(administration, owner.id, client_id, given)
    kept = await administration.client(client_id)
    if kept.disabled:
        raise NotPossible(f"the client {key} is disabled for good: use another key")
    return await _change(administration, kept, given)


async def _add(
    administration: Administration, tenant: str, client_id: str, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    config, keys = administration.config.auth, keys_given(administration, given, tenant=tenant)
    new = clients.NewClient(
        tenant=tenant,
        name=given.get("name", ""),
        environment=config.environment,
        scopes=given.get("scopes", ()),
        networks=given.get("networks", ()),
        valid_days=given.get("valid_days", config.secret_days),
        id=client_id,
        jwks=keys["jwks"],
        jwks_url=keys["jwks_url"],
    )
    async with administration.recorded("client.add", tenant=tenant) as doing:
        added, secret = await clients.add_client(
            administration.store, new, clock=administration.clock
        )
        doing.name("Client", added.id)
    return _with_secret(added, secret)


async def _change(
    administration: Administration, client: Client, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Give a client what is wanted, unless it has it."""
    name, networks = given.get("name", ""), given.get("networks", [])
    scopes = given.get("scopes", [])
    keys = keys_given(administration, given, tenant=client.tenant)
    clients.check_client(scopes, networks, keys["jwks"])
    wanted = replace(client, name=name, networks=clients.canonical(networks))
    changes = {name: given[name] for name in ("jwks", "jwks_url") if given.get(name)}
    if wanted != client or not clients.has_keys(client, **keys):
        await edit(administration, client=client.id, name=name, networks=networks, **changes)
    if tuple(scopes) != client.scopes:
        await set_scopes(administration, client=client.id, scopes=scopes)
    return record_of(await administration.client(client.id))


async def list_(
    administration: Administration, *, tenant: str | None = None
) -> list[Mapping[str, Any]]:
    """List clients, and when each was last used."""
    store = administration.store
    owner = None if tenant is None else (await administration.tenant(tenant)).id
    found, uses = await store.clients(tenant=owner), await store.client_uses()
    return await in_turns(
        lambda one: {**record_of(one), "last_used": _moment(uses.get(one.id))}, found
    )


async def show(administration: Administration, *, client: str) -> Mapping[str, Any]:
    """Return a client, without its secrets."""
    return record_of(await administration.client(client))


async def rotate(
    administration: Administration,
    *,
    client: str,
    grace_seconds: int | None = None,
    valid_days: int | None = None,
) -> Mapping[str, Any]:
    """Create a new secret, which is shown this once."""
    found, config = await administration.client(client), administration.config.auth
    grace = config.secret_grace_seconds if grace_seconds is None else grace_seconds
    days = config.secret_days if valid_days is None else valid_days
    what = ("Client", found.id)
    async with administration.recorded("client.rotate", what, tenant=found.tenant):
        rotated, secret = await clients.rotate_client(
            administration.store,
            found.id,
            grace_seconds=grace,
            valid_days=days,
            clock=administration.clock,
        )
    shown = _with_secret(rotated, secret)
    return {**shown, "grace_seconds": grace, "disabled": rotated.disabled}


async def set_scopes(
    administration: Administration, *, client: str, scopes: Sequence[str]
) -> Mapping[str, Any]:
    """Replace the scopes of a client."""
    found = await administration.client(client)
    what = ("Client", found.id)
    async with administration.recorded("client.scopes", what, tenant=found.tenant):
        return record_of(await clients.set_scopes(administration.store, found.id, scopes))


async def edit(
    administration: Administration,
    *,
    client: str,
    name: str | None = None,
    networks: Sequence[str] | None = None,
    **given: Any,
) -> Mapping[str, Any]:
    """Change the name, the networks or the keys of a client."""
    found = await administration.client(client)
    keys, what = keys_given(administration, given, tenant=found.tenant), ("Client", found.id)
    async with administration.recorded("client.edit", what, tenant=found.tenant):
        clients.check_client((), networks or (), keys["jwks"])  # before the keys are changed
        if any(keys.values()):
            await clients.set_keys(
                administration.store,
                found.id,
                grace_seconds=administration.config.auth.secret_grace_seconds,
                clock=administration.clock,
                **keys,
            )
        changed = await clients.edit_client(
            administration.store, found.id, name=name, networks=networks
        )
    return record_of(changed)


async def disable(administration: Administration, *, client: str) -> Mapping[str, Any]:
    """Disable a client for good."""
    found = await administration.client(client)
    what = ("Client", found.id)
    async with administration.recorded("client.disable", what, tenant=found.tenant):
        return record_of(await clients.disable_client(administration.store, found.id))


def _with_secret(client: Client, secret: str) -> Mapping[str, Any]:
    record = dict(record_of(client))
    del record["created"], record["disabled"]
    return {"client_id": client.id, **({"client_secret": secret} if secret else {}), **record}


def record_of(client: Client) -> Mapping[str, Any]:
    """Return what is shown of a client."""
    return {
        "client_id": client.id,
        "tenant": client.tenant,
        "name": client.name,
        "environment": client.environment,
        "scopes": list(client.scopes),
        "networks": list(client.networks),
        "keys": shown_keys(client),
        "created": instant(client.created),
        "valid_until": _moment(clients.secrets_end(client)),
        "disabled": client.disabled,
    }


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else instant(milliseconds)


_NEW = (NAME, SCOPES_GRANTED, NETWORKS, _VALID_DAYS, JWKS, JWKS_URL)
ADD = Operation(
    command="client add",
    method="POST",
    path="/tenants/{tenant}/clients",
    summary="Add credentials for a tenant; the secret is shown only once",
    run=add,
    parameters=(OF_TENANT, *_NEW),
    status=201,
)
PUT = Operation(
    command="client add --key",
    method="PUT",
    path="/tenants/{tenant}/clients/{key}",
    summary="Add the client with a key of the caller's, or change it to be as described",
    run=put,
    parameters=(
        OF_TENANT,
        OF_KEY,
        *_NEW,
    ),
)
LIST = Operation(
    command="client list",
    method="GET",
    path="/clients",
    summary="List credentials, oldest first, without their secrets",
    run=list_,
    parameters=(ONLY_OF_TENANT,),
)
SHOW = Operation(
    command="client show",
    method="GET",
    path="/clients/{client}",
    summary="Show a client, without its secrets",
    run=show,
    parameters=(OF_CLIENT,),
)
ROTATE = Operation(
    command="client rotate",
    method="POST",
    path="/clients/{client}/rotate",
    summary="Create a new secret; the old one works for a grace period",
    run=rotate,
    parameters=(
        OF_CLIENT,
        Parameter(
            name="grace_seconds",
            type="integer",
            text="Seconds for which the old secret still works. Default: [auth] "
            "secret_grace_seconds.",
            minimum=0,
            maximum=LARGEST,
        ),
        _VALID_DAYS,
    ),
)
SCOPES = Operation(
    command="client scopes",
    method="PUT",
    path="/clients/{client}/scopes",
    summary="Replace the scopes of a client; its tokens lose removed scopes within half a minute",
    run=set_scopes,
    parameters=(OF_CLIENT, replace(SCOPES_GRANTED, required=True)),
)
EDIT = Operation(
    command="client edit",
    method="PATCH",
    path="/clients/{client}",
    summary="Change the name, the networks or the keys of a client",
    run=edit,
    parameters=(OF_CLIENT, NAME, NETWORKS, JWKS, JWKS_URL),
)
DISABLE = Operation(
    command="client disable",
    method="POST",
    path="/clients/{client}/disable",
    summary="Disable a client for good; its tokens are refused within half a minute",
    run=disable,
    parameters=(OF_CLIENT,),
    is_final=True,
)
OPERATIONS = (ADD, PUT, LIST, SHOW, ROTATE, SCOPES, EDIT, DISABLE)
