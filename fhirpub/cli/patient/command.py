"""``fhirpub patient``: Patients that reports share, and reports that belong to another one."""

from __future__ import annotations

from typing import Any

import click

from fhirpub.administration import patients
from fhirpub.administration.naming import id_of
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import Command, with_json, with_note
from fhirpub.cli.patient.conflicts import conflicts
from fhirpub.cli.patient.naming import IdentifierType
from fhirpub.cli.patient.show import show
from fhirpub.cli.printing import Record, print_table


@click.group()
def patient() -> None:
    """Show Patients that reports share, and move reports to another one."""


def _with_new_patient(command: Command) -> Command:
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
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the reports."
)
@_with_new_patient
@with_note
@click.option("--dry-run", is_flag=True, help="Only show what would be moved.")
@with_target
@with_json
def relink_(
    report_ids: tuple[str, ...],
    tenant_id: str,
    target: Target,
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
    if sum(bool(given[name]) for name in ("identifier", "patient_id", "apart")) != 1:
        raise click.UsageError("name one of --identifier, --patient and --apart")
    if given["apart"] and len(report_ids) > 1:
        raise click.UsageError(
            "--apart takes one report: move it first, then the others to its Patient, by --patient"
        )
    identifier = given["identifier"]
    done = target.call(
        patients.RELINK,
        tenant=tenant_id,
        reports=list(dict.fromkeys(map(id_of, report_ids))),
        identifier="|".join(identifier) if identifier else None,
        patient=given["patient_id"],
        apart=given["apart"] or None,
        reason=given["reason"],
        operator=given["operator"],
        dry_run=dry_run,
    )
    for line in done["left"]:
        click.echo(line, err=True)
    records = [_record(one, dry_run=dry_run) for one in done["moved"]]
    print_table(records, as_json=as_json, empty="")


patient.add_command(show)
patient.add_command(conflicts)


def _record(one: Record, *, dry_run: bool) -> Record:
    record = dict(one)
    outcome = "would be moved" if dry_run else "moved"
    is_needed = record.pop("is_needed")
    return {**record, "outcome": outcome if is_needed else "belongs to it already"}
