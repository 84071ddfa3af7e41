"""``fhirpub patient show``: what reports state about a patient."""

from __future__ import annotations

import click

from fhirpub.administration import patients
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.patient.naming import IdentifierType
from fhirpub.cli.printing import print_json, print_table


@click.command(
    epilog="""\b
Examples:
  fhirpub patient show 5d6f… --tenant 5f0c…
  fhirpub patient show --tenant 5f0c… --identifier 'https://registry.example|4711' --names
"""
)
@click.argument("patient_id", metavar="[PATIENT_ID]", required=False)
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the patient."
)
@click.option(
    "--identifier",
    type=IdentifierType(),
    metavar="'SYSTEM|VALUE'",
    help="The person with this identifier, in one of [patients] person_systems.",
)
@click.option("--names", is_flag=True, help="Show names and birth dates, too.")
@with_target
@with_json
def show(
    patient_id: str | None,
    tenant_id: str,
    target: Target,
    *,
    identifier: tuple[str, str] | None,
    names: bool,
    as_json: bool,
) -> None:
    """Show what was stated about a patient: by which report, when, and with which identifiers.

    The newest statement comes first. One that no longer counts shows to which Patient its report
    was moved. Names are shown only with --names.
    """
    if (patient_id is None) == (identifier is None):
        raise click.UsageError("name either a PATIENT_ID or --identifier")
    shown = target.call(
        patients.SHOW,
        tenant=tenant_id,
        patient=patient_id,
        identifier="|".join(identifier) if identifier else None,
        names=names,
    )
    if as_json:
        print_json(shown)
        return
    click.secho(f"Patient/{shown['patient']}", bold=True)
    print_table(shown["statements"], as_json=False, empty="Nothing was stated about it.")
    if len(shown["statements"]) == patients.MAX_STATEMENTS:
        click.echo(f"Only the newest {patients.MAX_STATEMENTS:,} statements are shown.")
