"""``fhirpub patient conflicts``: identifiers of persons that several Patients have."""

from __future__ import annotations

import asyncio
import sys
import time

import click

from fhirpub.app.console import open_console
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import is_terminal, print_table
from fhirpub.config.settings import Config
from fhirpub.interactions.patients.all_conflicts import MAX_CONFLICTS, Conflict, all_conflicts

_SECONDS_BETWEEN_LINES = 10


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
    line = _Line()
    found = asyncio.run(_conflicts(config, tenant_id, line))
    records = [
        {"identifier": f"{one.system}|{one.value}", "patients": list(one.patients)}
        for one in found
    ]
    print_table(records, as_json=as_json, empty="No identifier belongs to several Patients.")
    if len(found) == MAX_CONFLICTS:
        click.echo(f"There may be more than these {MAX_CONFLICTS:,}.", err=True)


async def _conflicts(config: Config, tenant_id: str, line: _Line) -> list[Conflict]:
    async with open_console(config, tenant_id) as console:
        line.total = await console.store.count()
        try:
            return [
                conflict
                async for conflict in all_conflicts(
                    tenant=console.tenant,
                    context=console.context,
                    store=console.store,
                    on_progress=line.show,
                )
            ]
        finally:
            line.end()


class _Line:
    """The progress line on standard error; on a terminal it is updated in place."""

    total = 0

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._terminal = is_terminal(sys.stderr)

    def show(self, read: int) -> None:
        """Print how much was read."""
        now = time.monotonic()
        if now - self._last < (0.1 if self._terminal else _SECONDS_BETWEEN_LINES):
            return
        self._last = now
        text = f"{read:,} of {self.total:,} versions"
        click.echo(f"\r{text:<70}" if self._terminal else text, err=True, nl=not self._terminal)

    def end(self) -> None:
        """Start a new line."""
        if self._terminal:
            click.echo(err=True)
