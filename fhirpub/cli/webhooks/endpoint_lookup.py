"""What the commands for endpoints share: the endpoint that is meant, and how it is printed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.changes import recorded
from fhirpub.auth.tenants import require_tenant
from fhirpub.cli.printing import Record
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.endpoints import EndpointWithSecrets

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
Act = Callable[[AdminContext, Endpoint], Awaitable[T]]

_TOKEN_VARIABLE = "FHIRPUB_ENDPOINT_TOKEN"  # noqa: S105 - the name of a variable


def with_secret_import(command: Command) -> Command:
    """Add the option to use an existing secret to a command."""
    return click.option(
        "--import-secret",
        is_flag=True,
        help="Use an existing secret, from FHIRPUB_SIGNING_SECRET or a prompt.",
    )(command)


def with_token_import(command: Command) -> Command:
    """Add the option to use an existing token to a command."""
    return click.option(
        "--import-token",
        is_flag=True,
        help=f"Use an existing token, from {_TOKEN_VARIABLE} or a prompt.",
    )(command)


async def endpoint_of_any(open_: AdminContext, endpoint_id: str) -> Endpoint:
    """Return an endpoint of any tenant, or a deleted one. Raises NoSuchRecord."""
    for tenant in await open_.store.tenants():
        found = await open_.store.endpoint(tenant.id, endpoint_id)
        if found is not None:
            return found
    raise NoSuchRecord("endpoint", endpoint_id)


async def tenants_meant(open_: AdminContext, tenant_id: str | None) -> Sequence[str]:
    """Return the id of the named tenant, or the ids of all. Raises NoSuchRecord."""
    if tenant_id is None:
        return [tenant.id for tenant in await open_.store.tenants()]
    return [(await require_tenant(open_.store, tenant_id)).id]


def run_on_endpoint(config: Config, endpoint_id: str, act: Act[T], *, action: str = "") -> T:
    """Run an action on an endpoint of any tenant; it is recorded under a name if it has one."""

    async def running() -> T:
        async with open_admin(config) as open_:
            endpoint = await endpoint_of_any(open_, endpoint_id)
            if not action:
                return await act(open_, endpoint)
            what = ("Endpoint", endpoint.id)
            async with recorded(config, open_.store, action, what, tenant=endpoint.tenant):
                return await act(open_, endpoint)

    return asyncio.run(running())


def prompt_for_token() -> str:
    """Return the token of the environment, or of a prompt."""
    return variable(_TOKEN_VARIABLE) or str(click.prompt("Token", hide_input=True, err=True))


def record_of(endpoint: Endpoint) -> Record:
    """Return what is printed of an endpoint."""
    record = presenting.endpoint_record(endpoint)
    return {"id": endpoint.id, "tenant": endpoint.tenant, **record}


def record_with_secrets(disclosed: EndpointWithSecrets) -> Record:
    """Return the same with the secrets that are shown only once."""
    made = {"signing_secret": disclosed.signing_secret, "token": disclosed.token}
    shown = {name: text for name, text in made.items() if text}
    return {"id": disclosed.endpoint.id, **shown, **record_of(disclosed.endpoint)}
