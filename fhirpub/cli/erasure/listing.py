"""``fhirpub erase list``, ``export`` and ``resume``: orders, and how far they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any, TextIO

import click

from fhirpub.app.changes import record_read
from fhirpub.app.console import open_console
from fhirpub.app.stores import open_store
from fhirpub.cli.erasure.work import Work, records_of, rest_of
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_json, print_table
from fhirpub.config.settings import Config
from fhirpub.fhir.times import instant
from fhirpub.storage.erasure.contract import Erasure, Hold
from fhirpub.storage.store import Store

_PAGE = 100
_only_of_tenant = click.option("--tenant", "tenant_id", metavar="ID", help="Only of this tenant.")


@click.command(name="list")
@_only_of_tenant
@click.option("--unfinished", is_flag=True, help="Only orders that were interrupted.")
@with_config
@with_json
def list_(tenant_id: str | None, config: Config, *, unfinished: bool, as_json: bool) -> None:
    """List orders to erase: what, when, why, who, and whether they are finished."""
    found = asyncio.run(_list(config, tenant_id, unfinished=unfinished))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [
        {
            "resource": f"{one.type}/{one.id}",
            "tenant": one.tenant,
            "ordered": instant(one.ordered),
            "operator": one.operator,
            "reason": one.reason,
            "finished": one.finished is not None,
        }
        for one in found
    ]
    print_table(rows, as_json=False, empty="Nothing was erased.")


@click.command(
    epilog="""\b
Example:
  fhirpub erase export erasures.jsonl      keep it with the backups; `fhirpub restore` reads it
"""
)
@click.argument("file", type=click.File("w", encoding="utf-8"), default="-")
@_only_of_tenant
@with_config
def export(file: TextIO, tenant_id: str | None, config: Config) -> None:
    """Write orders that were carried out, and holds, as lines of JSON.

    `fhirpub restore` repeats them on a backup that is restored.
    """
    orders, holds = asyncio.run(_export(config, tenant_id))
    file.writelines(map(_line_of, orders))
    file.writelines(map(_line_of, holds))


@click.command()
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the orders.")
@with_config
@with_json
def resume(tenant_id: str, config: Config, *, as_json: bool) -> None:
    """Complete the orders that were interrupted."""

    async def run() -> list[Any]:
        async with open_console(config, tenant_id) as console:
            return await Work(config, console).resume()

    erased = asyncio.run(run())
    if as_json:
        print_json([asdict(one) for one in erased])
        return
    print_table(records_of(erased), as_json=False, empty="No order was interrupted.")
    for line in rest_of(erased):
        click.echo(line, err=True)


async def _list(config: Config, tenant_id: str | None, *, unfinished: bool) -> list[Erasure]:
    async with open_store(config, create=False) as store:
        found = [one async for one in orders_in(store, tenant_id, unfinished=unfinished)]
        for tenant in sorted({one.tenant for one in found}):
            await record_read(config, store, "erase.list", tenant=tenant)
        return found


async def _export(config: Config, tenant_id: str | None) -> tuple[list[Erasure], list[Hold]]:
    orders = await _list(config, tenant_id, unfinished=False)
    async with open_store(config, create=False) as store:
        tenants = [tenant_id] if tenant_id else [tenant.id for tenant in await store.tenants()]
        holds = [hold for tenant in tenants for hold in await store.holds(tenant)]
    return [one for one in orders if one.version], holds


async def orders_in(
    store: Store, tenant_id: str | None = None, *, unfinished: bool = False
) -> AsyncGenerator[Erasure, None]:
    """Yield the orders in a store."""
    after = ("", "")
    while page := await store.erasures(
        tenant=tenant_id, unfinished=unfinished, after=after, limit=_PAGE
    ):
        for one in page:
            yield one
        after = (page[-1].tenant, page[-1].id)


def _line_of(record: Erasure | Hold) -> str:
    return json.dumps(asdict(record), ensure_ascii=False) + "\n"
