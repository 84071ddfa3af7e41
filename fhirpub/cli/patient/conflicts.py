"""``fhirpub patient conflicts``: identifiers of persons that several Patients have."""

from __future__ import annotations

import asyncio

import click

from fhirpub.app.console import open_console
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_table
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.config.settings import Config
from fhirpub.interactions.patients.all_conflicts import MAX_CONFLICTS, Conflict, all_conflicts


@click.command(
    epilog="""\b
Example:
  fhirpub patient conflicts --tenant 5f0c… --json
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the patients.")
@with_config
@with_json
def conflicts(tenant_id: str, config: Config, *, as_json: bool) -> None:
    """List identifiers in [patients] person_systems that more than one Patient has.

    Every version in the store is read once, which takes minutes in a large one; the service may
    run. `fhirpub patient show` shows which reports gave a Patient its identifiers.
    """
    found = asyncio.run(_conflicts(config, tenant_id))
    records = [
        {"identifier": f"{one.system}|{one.value}", "patients": list(one.patients)}
        for one in found
    ]
    print_table(records, as_json=as_json, empty="No identifier belongs to several Patients.")
    if len(found) == MAX_CONFLICTS:
        click.echo(f"There may be more than these {MAX_CONFLICTS:,}.", err=True)


async def _conflicts(config: Config, tenant_id: str) -> list[Conflict]:
    line = ProgressLine(at_once=False)
    async with open_console(config, tenant_id) as console:
        total = await console.store.count()
        try:
            return [
                conflict
                async for conflict in all_conflicts(
                    tenant=console.tenant,
                    context=console.context,
                    store=console.store,
                    on_progress=lambda read: line.show(lambda: f"{read:,} of {total:,} versions"),
                )
            ]
        finally:
            line.end()
