"""``fhirpub patient show``: what reports state about a patient."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from fhirpub.app.changes import record_read
from fhirpub.app.console import TenantConsole, open_console
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.patient.naming import IdentifierType, id_of
from fhirpub.cli.printing import Record, print_json, print_table
from fhirpub.config.settings import Config
from fhirpub.fhir.human_name import given_names, name_to_use
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant
from fhirpub.interactions.indexing.persons import current_values
from fhirpub.interactions.patients.overview import Stated, statements_about
from fhirpub.interactions.relinking.targets import person_with

_MOST = 1_000


@click.command(
    epilog="""\b
Examples:
  fhirpub patient show 5d6f… --tenant 5f0c…
  fhirpub patient show --tenant 5f0c… --identifier 'https://registry.example|4711' --names
"""
)
@click.argument("patient_id", metavar="[PATIENT_ID]", required=False)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the patient.")
@click.option(
    "--identifier",
    type=IdentifierType(),
    metavar="'SYSTEM|VALUE'",
    help="The person with this identifier, in one of [patients] person_systems.",
)
@click.option("--names", is_flag=True, help="Show names and birth dates, too.")
@with_config
@with_json
def show(
    patient_id: str | None,
    tenant_id: str,
    config: Config,
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
    found, stated = asyncio.run(_show(config, tenant_id, patient_id, identifier))
    systems = config.patients.person_systems
    records = [_record(one, found, systems, names=names) for one in stated]
    if as_json:
        print_json({"patient": found, "statements": records})
        return
    click.secho(f"Patient/{found}", bold=True)
    print_table(records, as_json=False, empty="Nothing was stated about it.")
    if len(stated) == _MOST:
        click.echo(f"Only the newest {_MOST:,} statements are shown.")


async def _show(
    config: Config, tenant_id: str, patient_id: str | None, identifier: tuple[str, str] | None
) -> tuple[str, list[Stated]]:
    async with open_console(config, tenant_id) as console:
        found = id_of(patient_id or "") or _person(console, identifier)
        await record_read(
            config, console.store, "read", ("Patient", found), tenant=console.tenant.id
        )
        stated: list[Stated] = []
        async for one in statements_about(found, tenant=console.tenant, context=console.context):
            stated.append(one)
            if len(stated) == _MOST:
                break
        return found, stated


def _person(console: TenantConsole, identifier: tuple[str, str] | None) -> str:
    system, value = identifier or ("", "")
    return person_with(system, value, tenant=console.tenant, context=console.context).id


def _record(one: Stated, patient_id: str, systems: list[str], *, names: bool) -> Record:
    moved = one.belongs_to != patient_id
    provenance: dict[str, Any] = one.provenance
    record = {
        "stated": instant(one.stated),
        "version": one.statement,
        "report": f"{one.resource_type}/{one.resource_id}",
        "identifiers": [
            f"{system}|{value}"
            for system in systems
            for value in sorted(current_values(one.patient, system))
        ],
        "moved_to": f"Patient/{one.belongs_to}" if moved else None,
        "operator": provenance["agent"][0]["who"]["display"] if provenance else None,
        "reason": provenance["reason"][0]["text"] if provenance else None,
    }
    return {**record, **_person_shown(one.patient)} if names else record


def _person_shown(patient: JsonObject) -> Record:
    name = name_to_use(patient.get("name", ()))
    shown = name.get("text") or f"{given_names(name)} {name.get('family', '')}".strip()
    return {"name": shown, "birth_date": patient.get("birthDate")}
