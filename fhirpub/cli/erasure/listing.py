"""``fhirpub erase list``, ``export`` and ``resume``: orders, and how far they are."""

from __future__ import annotations

import json
from typing import TextIO

import click

from fhirpub.administration import tenants
from fhirpub.administration.erasure import holds as of_holds
from fhirpub.administration.erasure import operations
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.erasure.carrying_out import complete
from fhirpub.cli.erasure.printing import records_of, rest_of
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import Record, print_json, print_table
from fhirpub.fhir.times import instant

_only_of_tenant = click.option(
    "--tenant", "tenant_id", metavar="TENANT", help="Only of this tenant."
)


@click.command(name="list")
@_only_of_tenant
@click.option("--unfinished", is_flag=True, help="Only orders that were interrupted.")
@with_target
@with_json
def list_(tenant_id: str | None, target: Target, *, unfinished: bool, as_json: bool) -> None:
    """List orders to erase: what, when, why, who, and whether they are finished."""
    found = target.run(
        lambda call: orders_in(call, tenant_id, unfinished=unfinished), creates_store=False
    )
    if as_json:
        print_json(found)
        return
    print_table(list(map(_row, found)), as_json=False, empty="Nothing was erased.")


@click.command(
    epilog="""\b
Example:
  fhirpub erase export erasures.jsonl      keep it with the backups; `fhirpub restore` reads it
"""
)
@click.argument("file", type=click.File("w", encoding="utf-8"), default="-")
@_only_of_tenant
@with_target
def export(file: TextIO, tenant_id: str | None, target: Target) -> None:
    """Write orders that were carried out, and holds, as lines of JSON.

    `fhirpub restore` repeats them on a backup that is restored.
    """
    records = target.run(lambda call: _export(call, tenant_id), creates_store=False)
    file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


@click.command()
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the orders."
)
@with_target
@with_json
def resume(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """Complete the orders that were interrupted."""
    erased = target.run(lambda call: complete(call, tenant_id), creates_store=False)
    if as_json:
        print_json(erased)
        return
    print_table(records_of(erased), as_json=False, empty="No order was interrupted.")
    for line in rest_of(erased):
        click.echo(line, err=True)


def _row(order: Record) -> Record:
    return {
        "resource": f"{order['type']}/{order['id']}",
        "tenant": order["tenant"],
        "ordered": instant(order["ordered"]),
        "operator": order["operator"],
        "reason": order["reason"],
        "finished": order["finished"] is not None,
    }


async def orders_in(
    call: Caller, tenant_id: str | None, *, unfinished: bool = False
) -> list[Record]:
    """Return the orders in the store."""
    found: list[Record] = []
    following: str | None = ""
    while following is not None:
        page = await call(
            operations.LIST, tenant=tenant_id, unfinished=unfinished, after=following
        )
        found += page["orders"]
        following = page["following"]
    return found


async def _export(call: Caller, tenant_id: str | None) -> list[Record]:
    records = [one for one in await orders_in(call, tenant_id) if one["version"]]
    named = [tenant_id] if tenant_id else [one["id"] for one in await call(tenants.LIST)]
    for tenant in named:
        records += await call(of_holds.LIST, tenant=tenant)
    return records
