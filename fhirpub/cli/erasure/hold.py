"""``fhirpub hold``: resources and Patients that must not be erased for now."""

from __future__ import annotations

import asyncio

import click

from fhirpub.app.changes import record_read, recorded
from fhirpub.app.console import TenantConsole, open_console
from fhirpub.app.stores import open_store
from fhirpub.auth.tenants import require_tenant
from fhirpub.cli.options import with_config, with_json, with_note
from fhirpub.cli.printing import Record, print_record, print_table
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchResource
from fhirpub.fhir.times import instant
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.read import read
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.erasure.contract import Hold
from fhirpub.tenant import is_resource_id

_of_tenant = click.option(
    "--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the resource."
)


class ResourceNameType(click.ParamType[tuple[str, str]]):
    """A resource: its FHIR type, a slash, its id."""

    name = "resource"

    def convert(
        self,
        value: str | tuple[str, str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Return the type and the id."""
        if isinstance(value, tuple):
            return value
        type_name, _, id_ = value.rpartition("/")
        if not type_name.isalpha() or not is_resource_id(id_):
            self.fail("is not TYPE/ID, such as DiagnosticReport/7d1a…", param, ctx)
        return type_name, id_


@click.group()
def hold() -> None:
    """Put resources on legal hold: neither an order nor a retention policy erases them."""


@hold.command(
    epilog="""\b
Examples:
  fhirpub hold add DiagnosticReport/7d1a… --tenant 5f0c… --reason "case 4 C 12/26"
  fhirpub hold add Patient/1cd0… --tenant 5f0c… --reason "case 4 C 12/26"
"""
)
@click.argument("resource", type=ResourceNameType(), metavar="TYPE/ID")
@_of_tenant
@with_note
@with_config
@with_json
def add(
    resource: tuple[str, str],
    tenant_id: str,
    reason: str,
    operator: str,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Put a resource on hold, or everything that refers to a Patient."""
    on_hold = Hold(
        tenant=tenant_id,
        type=resource[0],
        id=resource[1],
        since=now_ms(),
        operator=operator,
        reason=reason,
    )

    async def run() -> None:
        async with open_console(config, tenant_id) as console:
            await _require_resource(resource, console)
            store = console.store
            async with recorded(config, store, "hold.add", resource, tenant=tenant_id):
                await store.put_hold(on_hold)

    asyncio.run(run())
    print_record(f"{'/'.join(resource)} is on hold", _row(on_hold), as_json=as_json)


@hold.command()
@click.argument("resource", type=ResourceNameType(), metavar="TYPE/ID")
@_of_tenant
@with_config
@with_json
def release(resource: tuple[str, str], tenant_id: str, config: Config, *, as_json: bool) -> None:
    """End a hold."""

    async def run() -> bool:
        async with open_store(config, create=False) as store:
            await require_tenant(store, tenant_id)
            async with recorded(config, store, "hold.release", resource, tenant=tenant_id):
                return await store.delete_hold(tenant_id, resource)

    if not asyncio.run(run()):
        raise click.ClickException(f"{'/'.join(resource)} is not on hold")
    name = "/".join(resource)
    print_record(f"{name} is no longer on hold", {"released": name}, as_json=as_json)


@hold.command(name="list")
@_of_tenant
@with_config
@with_json
def list_(tenant_id: str, config: Config, *, as_json: bool) -> None:
    """List what is on hold, since when, and why."""

    async def run() -> list[Hold]:
        async with open_store(config, create=False) as store:
            await require_tenant(store, tenant_id)
            await record_read(config, store, "hold.list", tenant=tenant_id)
            return [*await store.holds(tenant_id)]

    rows = [_row(one) for one in asyncio.run(run())]
    print_table(rows, as_json=as_json, empty="Nothing is on hold.")


async def _require_resource(resource: tuple[str, str], console: TenantConsole) -> None:
    """Raise ClickException if a hold would protect nothing."""
    type_name, id_ = resource
    tenant, context = console.tenant, console.context
    try:
        if type_name == PATIENT:
            await read_patient(id_, tenant=tenant, context=context)
        else:
            await read(type_name, id_, tenant=tenant, context=context)
    except (NoSuchResource, ResourceErased) as problem:
        raise click.ClickException(
            f"{problem}: put the report on hold, one of its results, or a Patient"
        ) from None


def _row(one: Hold) -> Record:
    return {
        "resource": f"{one.type}/{one.id}",
        "since": instant(one.since),
        "operator": one.operator,
        "reason": one.reason,
    }
