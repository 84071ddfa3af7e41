"""``fhirpub patient``: Patients that reports share, and reports that belong to another one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from fhirpub.app.changes import recorded
from fhirpub.app.console import TenantConsole, open_console
from fhirpub.cli.options import Command, with_config, with_json, with_note
from fhirpub.cli.patient.conflicts import conflicts
from fhirpub.cli.patient.naming import IdentifierType, id_of
from fhirpub.cli.patient.show import show
from fhirpub.cli.printing import Record, print_table
from fhirpub.config.settings import Config
from fhirpub.interactions.relinking import targets
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import Note, Relink, plan_relink, relink
from fhirpub.interactions.relinking.stranded import left_behind, refuse_stranded


@click.group()
def patient() -> None:
    """Show Patients that reports share, and move reports to another one."""


def _with_target(command: Command) -> Command:
    """Add the options that name the Patient to move to."""
    for option in (
        click.option("--apart", is_flag=True, help="To a new Patient of the report's own."),
        click.option("--patient", "patient_id", metavar="ID", help="To a Patient that exists."),
        click.option(
            "--identifier",
            type=IdentifierType(),
            metavar="'SYSTEM|VALUE'",
            help="To the person with this identifier, in one of [patients] person_systems.",
        ),
    ):
        command = option(command)
    return command


@patient.command(
    name="relink",
    short_help="Move reports to another Patient.",
    epilog="""\b
Examples:
  fhirpub patient relink 7d1a… --tenant 5f0c… --identifier 'https://registry.example|4711' \\
      --reason "mistyped at reception, ticket 812"
  fhirpub patient relink 7d1a… --tenant 5f0c… --apart --reason "twin under the same number"
  fhirpub patient relink 90b2… c33e… --tenant 5f0c… --patient 5d6f… --reason "the same twin"
""",
)
@click.argument("report_ids", metavar="REPORT_ID...", nargs=-1, required=True)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the reports.")
@_with_target
@with_note
@click.option("--dry-run", is_flag=True, help="Only show what would be moved.")
@with_config
@with_json
def relink_(
    report_ids: tuple[str, ...],
    tenant_id: str,
    config: Config,
    *,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Move reports with their results to another Patient, each in a next version.

    The patient of a report keeps what was published of it, but for its identifiers of persons:
    they become those of the Patient that it is moved to. Nothing is deleted: version 1 of the
    report shows what was published. Repeating the command is safe, and the service may run.
    """
    note = None if dry_run else Note(given["operator"], given["reason"])
    target = {name: given[name] for name in ("identifier", "patient_id", "apart")}
    if sum(map(bool, target.values())) != 1:
        raise click.UsageError("name one of --identifier, --patient and --apart")
    if target["apart"] and len(report_ids) > 1:
        raise click.UsageError(
            "--apart takes one report: move it first, then the others to its Patient, by --patient"
        )
    ids = list(dict.fromkeys(map(id_of, report_ids)))
    moved = asyncio.run(_relink(config, tenant_id, ids, target, note))
    print_table([_record(one, dry_run=dry_run) for one in moved], as_json=as_json, empty="")


patient.add_command(show)
patient.add_command(conflicts)


async def _relink(
    config: Config, tenant_id: str, ids: Sequence[str], given: dict[str, Any], note: Note | None
) -> Sequence[Relink]:
    """Check all reports before the first is moved; without a note, move none."""
    async with open_console(config, tenant_id) as console:
        target = await _target(console, ids, given)
        tenant, context = console.tenant, console.context
        planned = [await plan_relink(one, target, tenant=tenant, context=context) for one in ids]
        await refuse_stranded(planned, tenant=tenant, context=context)
        if note is None:
            return planned
        # Those first that state nothing: if this is interrupted, what they refer to is there.
        for one in sorted(planned, key=lambda one: one.states):
            what = (one.type, one.id), ("Patient", one.before), ("Patient", one.after)
            async with recorded(config, console.store, "patient.relink", *what, tenant=tenant.id):
                await relink(
                    one.id, target, note, tenant=tenant, context=context, store=console.store
                )
        async for patient_id, left in left_behind(planned, tenant=tenant, context=context):
            click.echo(
                f"{', '.join(left)} arrived during the move, and refers to "
                f"Patient/{patient_id}, of which nothing is known any more: move it as well.",
                err=True,
            )
        return planned


async def _target(console: TenantConsole, ids: Sequence[str], given: dict[str, Any]) -> Target:
    tenant, context = console.tenant, console.context
    if given["identifier"]:
        system, value = given["identifier"]
        return targets.person_with(system, value, tenant=tenant, context=context)
    if given["patient_id"]:
        patient_id = id_of(given["patient_id"])
        return await targets.known_patient(patient_id, tenant=tenant, context=context)
    return targets.apart(ids[0], tenant=tenant, context=context)


def _record(one: Relink, *, dry_run: bool) -> Record:
    done = "would be moved" if dry_run else "moved"
    return {
        "report": f"{one.type}/{one.id}",
        "version": one.version,
        "from": f"Patient/{one.before}",
        "to": f"Patient/{one.after}",
        "outcome": done if one.is_needed else "belongs to it already",
    }
