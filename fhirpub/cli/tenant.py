"""``fhirpub tenant``: the organizations that publish."""

from __future__ import annotations

import click

from fhirpub.administration import tenants
from fhirpub.cli.administration.target import Target, with_key, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import print_record, print_table


@click.group()
def tenant() -> None:
    """Add, list, rename, disable and enable the organizations that publish."""


@tenant.command(
    epilog="""\b
Examples:
  fhirpub tenant add "Lab Uno"
  fhirpub tenant add "Lab Uno" --key lab-uno   safe to repeat: adds it, or renames it
"""
)
@click.argument("name")
@with_key
@with_target
@with_json
def add(name: str, key: str | None, target: Target, *, as_json: bool) -> None:
    """Add an organization and print its id."""
    if key is None:
        added = target.call(tenants.ADD, name=name)
    else:
        added = target.call(tenants.PUT, key=key, name=name)
    command = f"fhirpub client add --tenant {added['id']} --scope system/DiagnosticReport.cruds"
    following = f"Next, add credentials: {target.repeated(command)}"
    print_record(
        "Tenant added." if key is None else "Tenant saved.",
        {"id": added["id"], "name": added["name"]},
        as_json=as_json,
        then="\n".join([*target.notes, following]),
    )


@tenant.command(name="list")
@with_target
@with_json
def list_(target: Target, *, as_json: bool) -> None:
    """List all organizations, oldest first."""
    records = target.call(tenants.LIST)
    following = target.repeated('fhirpub tenant add "Lab Uno"')
    print_table(records, as_json=as_json, empty=f"No tenants yet: {following}")


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@with_target
@with_json
def show(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """Show an organization by its id, key or name."""
    print_record("Tenant.", target.call(tenants.SHOW, tenant=tenant_id), as_json=as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@click.argument("name")
@with_target
@with_json
def rename(tenant_id: str, name: str, target: Target, *, as_json: bool) -> None:
    """Give an organization another name; its id stays."""
    renamed = target.call(tenants.RENAME, tenant=tenant_id, name=name)
    print_record("Tenant renamed.", renamed, as_json=as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@with_target
@with_json
def disable(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """Disable an organization: no requests, no webhooks; its reports are kept.

    `fhirpub tenant enable` undoes this.
    """
    disabled = target.call(tenants.DISABLE, tenant=tenant_id)
    print_record("Tenant disabled.", disabled, as_json=as_json)


@tenant.command()
@click.argument("tenant_id", metavar="TENANT")
@with_target
@with_json
def enable(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """Enable an organization that was disabled.

    Its clients and their tokens work again within half a minute. Its endpoints stay disabled:
    `fhirpub endpoint enable` starts each when its receiver is ready.
    """
    enabled = target.call(tenants.ENABLE, tenant=tenant_id)
    print_record("Tenant enabled.", enabled, as_json=as_json)
