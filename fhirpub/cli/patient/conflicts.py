"""``fhirpub patient conflicts``: identifiers of persons that several Patients have."""

from __future__ import annotations

from functools import partial

import click

from fhirpub.administration import patients
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import Record, print_table
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.interactions.patients.all_conflicts import MAX_CONFLICTS


@click.command(
    epilog="""\b
Example:
  fhirpub patient conflicts --tenant 5f0c… --json
"""
)
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the patients."
)
@with_target
@with_json
def conflicts(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """List identifiers in [patients] person_systems that more than one Patient has.

    Every version in the store is read once, which takes minutes in a large one; the service may
    run. `fhirpub patient show` shows which reports gave a Patient its identifiers.
    """
    found = target.run(lambda call: _find(call, tenant_id), creates_store=False)
    print_table(found, as_json=as_json, empty="No identifier belongs to several Patients.")
    if len(found) == MAX_CONFLICTS:
        click.echo(f"There may be more than these {MAX_CONFLICTS:,}.", err=True)


async def _find(call: Caller, tenant_id: str) -> list[Record]:
    """Return all conflicts, each once, up to a number."""
    found: dict[str, Record] = {}
    following: str | None = ""
    line, read = ProgressLine(at_once=False), 0
    try:
        while following is not None and len(found) < MAX_CONFLICTS:
            page = await call(patients.CONFLICTS, tenant=tenant_id, after=following)
            found |= {one["identifier"]: one for one in page["conflicts"]}
            read, following = read + page["read"], page["following"]
            line.show(partial("{:,} of {:,} versions".format, read, page["versions"]))
    finally:
        line.end()
    return [*found.values()][:MAX_CONFLICTS]
