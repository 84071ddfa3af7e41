"""``fhirpub tenant``: the organizations that publish."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import click

from fhirpub.app.admin import open_admin
from fhirpub.app.changes import recorded
from fhirpub.app.stores import open_store
from fhirpub.auth import tenants
from fhirpub.cli.encryption.new_key import noticing_new_key
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_record, print_table
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms
from fhirpub.tenant import Tenant


@click.group()
def tenant() -> None:
    """Add, list and disable the organizations that publish."""


@tenant.command(
    epilog="""\b
Example:
  fhirpub tenant add "Lab Uno"
"""
)
@click.argument("name")
@with_config
@with_json
def add(name: str, config: Config, *, as_json: bool) -> None:
    """Add an organization and print its id."""
    if not name.strip() or not name.isprintable():
        raise click.BadParameter(
            "must be one line of printable text, not blank", param_hint="NAME"
        )
    with noticing_new_key(config) as notes:
        added = asyncio.run(_add(config, name.strip()))
    following = f"Next, add credentials: fhirpub client add --tenant {added.id}"
    print_record(
        "Tenant added.",
        {"id": added.id, "name": added.name},
        as_json=as_json,
        then="\n".join([*notes, following]),
    )


@tenant.command(name="list")
@with_config
@with_json
def list_(config: Config, *, as_json: bool) -> None:
    """List all organizations, oldest first."""
    records = [_record(item) for item in asyncio.run(_all(config))]
    print_table(records, as_json=as_json, empty='No tenants yet: fhirpub tenant add "Lab Uno"')


@tenant.command()
@click.argument("tenant_id", metavar="ID")
@with_config
@with_json
def disable(tenant_id: str, config: Config, *, as_json: bool) -> None:
    """Disable an organization for good: no requests, no webhooks; its reports are kept."""
    disabled = asyncio.run(_disable(config, tenant_id))
    print_record("Tenant disabled.", _record(disabled), as_json=as_json)


async def _add(config: Config, name: str) -> Tenant:
    async with open_store(config) as store, recorded(config, store, "tenant.add") as doing:
        added = await tenants.add_tenant(store, name, clock=now_ms)
        doing.tenant = added.id
        doing.name("Tenant", added.id)
        return added


async def _all(config: Config) -> Sequence[Tenant]:
    async with open_store(config) as store:
        return await store.tenants()


async def _disable(config: Config, tenant_id: str) -> Tenant:
    what = ("Tenant", tenant_id)
    async with (
        open_admin(config) as open_,
        recorded(config, open_.store, "tenant.disable", what) as doing,
    ):
        disabled = await tenants.disable_tenant(open_.store, tenant_id)
        doing.tenant = tenant_id
        for endpoint in await open_.endpoints.endpoints(tenant_id):
            with suppress(NoSuchRecord):  # removed in the meantime
                await open_.endpoints.disable(tenant_id, endpoint.id)
    return disabled


def _record(each: Tenant) -> Record:
    return {
        "id": each.id,
        "name": each.name,
        "created": instant(each.created),
        "disabled": each.disabled,
    }
