"""Operations on persons: clients that have no secret, and sign in to the console by passkeys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fhirpub.administration.clients import NAME, NETWORKS, OF_CLIENT, SCOPES_GRANTED, record_of
from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.tenants import OF_TENANT
from fhirpub.auth import clients, passkeys
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import VALID_SECONDS, OneTimeStatements
from fhirpub.config.console import console_base_url
from fhirpub.errors import NotPossible
from fhirpub.fhir.times import instant
from fhirpub.storage.contract import Client


async def add(
    administration: Administration, *, tenant: str, name: str, **given: Any
) -> Mapping[str, Any]:
    """Add a person and return the link that invites the person, which is shown this once."""
    owner = await administration.tenant(tenant)
    signs_in_elsewhere = bool(administration.config.console.oidc_issuer)
    if not signs_in_elsewhere:
        _refuse_without_passkeys(administration)
    new = clients.NewClient(
        tenant=owner.id,
        name=name,
        environment=administration.config.auth.environment,
        scopes=given.get("scopes", ()),
        networks=given.get("networks", ()),
        is_person=True,
    )
    async with administration.recorded("client.add", tenant=owner.id) as doing:
        added, _none = await clients.add_client(
            administration.store, new, clock=administration.clock
        )
        doing.name("Client", added.id)
    if signs_in_elsewhere:
        return {"client_id": added.id, "name": added.name}
    return await _invite(administration, added)


async def invite(administration: Administration, *, client: str) -> Mapping[str, Any]:
    """Return a link by which a person gets a passkey, or another one; it is shown this once."""
    found = await administration.client(client)
    _refuse_without_passkeys(administration)
    return await _invite(administration, found)


async def remove_passkey(
    administration: Administration, *, client: str, kid: str
) -> Mapping[str, Any]:
    """Take a passkey away from a person, and end the sessions that began with it."""
    found = await administration.client(client)
    what = ("Client", found.id)
    async with administration.recorded("client.passkey.remove", what, tenant=found.tenant):
        return record_of(await passkeys.remove_passkey(administration.store, found.id, kid))


async def _invite(administration: Administration, client: Client) -> Mapping[str, Any]:
    config, store, clock = administration.config, administration.store, administration.clock
    what = ("Client", client.id)
    async with administration.recorded("client.invite", what, tenant=client.tenant):
        passkeys.check_invitable(client)
        if client.environment != config.auth.environment:
            raise NotPossible(
                f"the client {client.id} is of {client.environment}: invite it there"
            )
        once = OneTimeStatements(KeyRing(store, config.auth, clock=clock), store, clock=clock)
        end = instant(clock() + VALID_SECONDS["invitation"] * 1000)
        code = await once.sign("invitation", {"sub": client.id, "name": client.name})
    base_url = console_base_url(config.console, config.base_url)
    url = f"{base_url}/console/invitation?{urlencode({'code': code})}"
    return {"client_id": client.id, "name": client.name, "url": url, "valid_until": end}


def _refuse_without_passkeys(administration: Administration) -> None:
    problem = passkeys.why_none(administration.config)
    if problem:
        raise NotPossible(problem)


ADD = Operation(
    command="client add-person",
    method="POST",
    path="/tenants/{tenant}/persons",
    summary="Add a person who signs in to the console; the link of the invitation is shown once",
    run=add,
    parameters=(OF_TENANT, replace(NAME, required=True), SCOPES_GRANTED, NETWORKS),
    status=201,
    action="client.add",
)
INVITE = Operation(
    command="client invite",
    method="POST",
    path="/clients/{client}/invitation",
    summary="Invite a person to add a passkey; the link is valid once, for seven days",
    run=invite,
    parameters=(OF_CLIENT,),
    status=201,
)
REMOVE_PASSKEY = Operation(
    command="client remove-passkey",
    method="DELETE",
    path="/clients/{client}/passkeys/{kid}",
    summary="Remove a passkey that is lost; sessions that it began end within half a minute",
    run=remove_passkey,
    parameters=(
        OF_CLIENT,
        Parameter(
            name="kid",
            text="The passkey: its name among the keys of the client.",
            place="path",
            required=True,
            max_length=255,
        ),
    ),
    is_final=True,
    action="client.passkey.remove",
)
OPERATIONS = (ADD, INVITE, REMOVE_PASSKEY)
