"""``fhirpub client``: credentials of the applications that publish for a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import click

from fhirpub.app.changes import recorded, tenant_of_client
from fhirpub.app.stores import open_store
from fhirpub.auth import clients
from fhirpub.auth.scopes import gives_something
from fhirpub.auth.tenants import require_tenant
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_record, print_table
from fhirpub.config.loader import MAX_SECRET_DAYS
from fhirpub.config.reader import LARGEST
from fhirpub.config.settings import Config
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import Client
from fhirpub.storage.store import Store

_SHOWN_ONCE = "The secret is shown only once: store it in a safe place."


def _split(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> list[str]:
    """Return scopes one by one: OAuth separates them by spaces (RFC 6749, 3.3)."""
    return [scope for several in given for scope in several.split() or [several]]


def _split_networks(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> list[str]:
    """Return networks one by one: lists of them are also written with commas."""
    return [name for several in given for name in several.replace(",", " ").split() or [several]]


_with_networks = click.option(
    "--network",
    "networks",
    multiple=True,
    callback=_split_networks,
    metavar="CIDR",
    help="Network from which the client may call, such as 192.0.2.0/24, 2001:db8::/32 or one "
    "address, or several separated by commas; may be repeated. Without any it may call from "
    "everywhere.",
)
_with_valid_days = click.option(
    "--valid-days",
    type=click.IntRange(0, MAX_SECRET_DAYS),
    metavar="N",
    help="Days for which the secret is valid, 0: until it is rotated. Default: [auth] "
    "secret_days.",
)


@click.group()
def client() -> None:
    """Manage client credentials and their scopes."""


@client.command(
    epilog="""\b
Examples:
  fhirpub client add --tenant 5f0c… --name "ward system" --scope system/DiagnosticReport.cruds
  fhirpub client add --tenant 5f0c… --scope system/*.rs --network 10.1.0.0/16 --json
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the client.")
@click.option("--name", default="", metavar="TEXT", help="Name shown in lists.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    callback=_split,
    metavar="SCOPE",
    help="Scope to grant, or several separated by spaces; may be repeated.",
)
@_with_networks
@_with_valid_days
@with_config
@with_json
def add(config: Config, *, as_json: bool, **options: Any) -> None:
    """Add credentials for a tenant; the secret is shown only once."""
    _check_name(options["name"])
    days = options["valid_days"]
    new = clients.NewClient(
        tenant=options["tenant_id"],
        name=options["name"],
        environment=config.auth.environment,
        scopes=options["scopes"],
        networks=options["networks"],
        valid_days=config.auth.secret_days if days is None else days,
    )
    added, secret = asyncio.run(_add(config, new))
    _warn_of_empty(new.scopes)
    print_record("Client added.", _with_secret(added, secret), as_json=as_json, then=_SHOWN_ONCE)


@client.command(name="list")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only clients of this tenant.")
@with_config
@with_json
def list_(tenant_id: str | None, config: Config, *, as_json: bool) -> None:
    """List credentials, oldest first, without their secrets, and when each was last used.

    The last use is recorded at most once an hour for each client.
    """
    found, uses = asyncio.run(_all(config, tenant_id))
    records = [{**_record(item), "last_used": _moment(uses.get(item.id))} for item in found]
    print_table(records, as_json=as_json, empty="No clients yet: fhirpub client add --tenant ID")


@client.command()
@click.argument("client_id", metavar="ID")
@click.option(
    "--grace-seconds",
    type=click.IntRange(0, LARGEST),
    metavar="N",
    help="Seconds for which the old secret still works; default: [auth] secret_grace_seconds.",
)
@_with_valid_days
@with_config
@with_json
def rotate(
    client_id: str,
    grace_seconds: int | None,
    valid_days: int | None,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Create a new secret; the old one works for a grace period, so that clients need not stop."""
    grace = config.auth.secret_grace_seconds if grace_seconds is None else grace_seconds
    days = config.auth.secret_days if valid_days is None else valid_days
    rotated, secret = asyncio.run(_rotate(config, client_id, grace, days))
    old = f"works for another {grace} seconds" if grace else "no longer works"
    then = f"{_SHOWN_ONCE}\nThe old secret {old}."
    if rotated.disabled:
        then = "The client is disabled: none of its secrets works, not even the new one."
    shown = _with_secret(rotated, secret)
    print_record("Client rotated.", shown, as_json=as_json, then=then)


@client.command(
    epilog="""\b
Example:
  fhirpub client scopes 0b7e… --scope system/DiagnosticReport.rs --scope webhooks.read
"""
)
@click.argument("client_id", metavar="ID")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    callback=_split,
    metavar="SCOPE",
    help="Scope to grant, or several separated by spaces; may be repeated. Scopes that are not "
    "named are removed.",
)
@with_config
@with_json
def scopes(client_id: str, scopes: list[str], config: Config, *, as_json: bool) -> None:
    """Replace the scopes of a client; its tokens lose removed scopes within half a minute."""
    changed = asyncio.run(_set_scopes(config, client_id, scopes))
    _warn_of_empty(scopes)
    print_record("Scopes set.", _record(changed), as_json=as_json)


@client.command(
    epilog="""\b
Examples:
  fhirpub client edit 0b7e… --network 192.0.2.0/24 --network 2001:db8::/32
  fhirpub client edit 0b7e… --any-network --name "ward system, old"
"""
)
@click.argument("client_id", metavar="ID")
@click.option("--name", metavar="TEXT", help="Name shown in lists.")
@_with_networks
@click.option("--any-network", is_flag=True, help="Let the client call from everywhere.")
@with_config
@with_json
def edit(config: Config, *, as_json: bool, **options: Any) -> None:
    """Change the name or the networks of a client.

    The networks that are given replace those it has. Running services apply them within half a
    minute, to tokens that are already issued as well.
    """
    name, networks, anywhere = options["name"], options["networks"], options["any_network"]
    if networks and anywhere:
        raise click.UsageError("--network and --any-network exclude each other")
    if name is None and not networks and not anywhere:
        raise click.UsageError("nothing to change: give --name, --network or --any-network")
    _check_name(name or "")
    wanted = networks if networks or anywhere else None
    changed = asyncio.run(_edit(config, options["client_id"], name, wanted))
    print_record("Client changed.", _record(changed), as_json=as_json)


@client.command()
@click.argument("client_id", metavar="ID")
@with_config
@with_json
def disable(client_id: str, config: Config, *, as_json: bool) -> None:
    """Disable a client for good; its tokens are refused within half a minute."""
    disabled = asyncio.run(_disable(config, client_id))
    print_record("Client disabled.", _record(disabled), as_json=as_json)


async def _add(config: Config, new: clients.NewClient) -> tuple[Client, str]:
    async with (
        open_store(config) as store,
        recorded(config, store, "client.add", tenant=new.tenant) as doing,
    ):
        added, secret = await clients.add_client(store, new, clock=now_ms)
        doing.name("Client", added.id)
        return added, secret


async def _all(
    config: Config, tenant_id: str | None
) -> tuple[Sequence[Client], Mapping[str, int]]:
    async with open_store(config) as store:
        if tenant_id is not None:
            await require_tenant(store, tenant_id)
        return await store.clients(tenant=tenant_id), await store.client_uses()


async def _edit(
    config: Config, client_id: str, name: str | None, networks: Sequence[str] | None
) -> Client:
    async with _changing(config, "client.edit", client_id) as store:
        return await clients.edit_client(store, client_id, name=name, networks=networks)


async def _rotate(
    config: Config, client_id: str, grace_seconds: int, valid_days: int
) -> tuple[Client, str]:
    async with _changing(config, "client.rotate", client_id) as store:
        return await clients.rotate_client(
            store, client_id, grace_seconds=grace_seconds, valid_days=valid_days, clock=now_ms
        )


async def _set_scopes(config: Config, client_id: str, scopes: list[str]) -> Client:
    async with _changing(config, "client.scopes", client_id) as store:
        return await clients.set_scopes(store, client_id, scopes)


async def _disable(config: Config, client_id: str) -> Client:
    async with _changing(config, "client.disable", client_id) as store:
        return await clients.disable_client(store, client_id)


@asynccontextmanager
async def _changing(config: Config, action: str, client_id: str) -> AsyncGenerator[Store]:
    """Open the store to change a client, which is recorded in its tenant's chain."""
    async with open_store(config) as store:
        tenant = await tenant_of_client(store, client_id)
        async with recorded(config, store, action, ("Client", client_id), tenant=tenant):
            yield store


def _check_name(name: str) -> None:
    if not name.isprintable():
        raise click.BadParameter("must be one line of printable text", param_hint="--name")


def _warn_of_empty(scopes: Sequence[str]) -> None:
    for scope in scopes:
        if not gives_something(scope):
            click.echo(f"Warning: the scope {scope} allows nothing here.", err=True)


def _with_secret(each: Client, secret: str) -> Record:
    return {
        "client_id": each.id,
        "client_secret": secret,
        "tenant": each.tenant,
        "name": each.name,
        "environment": each.environment,
        "scopes": list(each.scopes),
        "networks": list(each.networks),
        "valid_until": _moment(clients.secrets_end(each)),
    }


def _record(each: Client) -> Record:
    return {
        "client_id": each.id,
        "tenant": each.tenant,
        "name": each.name,
        "environment": each.environment,
        "scopes": list(each.scopes),
        "networks": list(each.networks),
        "created": instant(each.created),
        "valid_until": _moment(clients.secrets_end(each)),
        "disabled": each.disabled,
    }


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else instant(milliseconds)
