"""``fhirpub erase``: remove the content of resources for good, on an order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from fhirpub.app.console import TenantConsole, open_console
from fhirpub.cli.erasure.listing import export, list_, resume
from fhirpub.cli.erasure.work import Note, Work, records_of, report_refused, rest_of
from fhirpub.cli.options import Command, with_config, with_json, with_note
from fhirpub.cli.patient.naming import IdentifierType, id_of
from fhirpub.cli.printing import Record, is_terminal, print_json, print_table
from fhirpub.config.retention import policies_of
from fhirpub.config.settings import Config
from fhirpub.interactions.erasure.erase import Erased
from fhirpub.interactions.erasure.patients import patients_by_identifier, resources_of
from fhirpub.interactions.erasure.retention import OPERATOR, check_policies, expired

_MOST_NAMED = 5


@click.group()
def erase() -> None:
    """Erase resources for good, on an order such as one under Article 17 GDPR.

    Every version, document and first response goes, with what searches and webhooks have of it. A
    tombstone stays: reads return 410, and the identifier cannot be registered again.
    """


def _with_order(command: Command) -> Command:
    """Add the options of an order."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask; erased content does not come back."),
        click.option("--dry-run", is_flag=True, help="Only show what would be erased."),
        click.option(
            "--allow-reuse", is_flag=True, help="Allow the identifiers to be registered again."
        ),
    ):
        command = option(command)
    return with_note(command)


_of_tenant = click.option(
    "--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the resources."
)
_by_identifier = click.option(
    "--identifier", type=IdentifierType(), metavar="'SYSTEM|VALUE'", help="By its identifier."
)


@erase.command(
    name="report",
    short_help="Erase reports, or other resources with versions of their own.",
    epilog="""\b
Examples:
  fhirpub erase report 7d1a… --tenant 5f0c… --reason "wrong tenant, ticket 812" --dry-run
  fhirpub erase report --identifier 'https://lab.example/reports|R-1' --tenant 5f0c… \\
      --reason "court order 4 C 12/26" --yes
""",
)
@click.argument("report_ids", metavar="[REPORT_ID]...", nargs=-1)
@_by_identifier
@click.option(
    "--type",
    "type_name",
    default="DiagnosticReport",
    metavar="TYPE",
    help="The FHIR type that --identifier means; default: DiagnosticReport.",
)
@_of_tenant
@_with_order
@with_config
@with_json
def report(
    report_ids: tuple[str, ...],
    type_name: str,
    tenant_id: str,
    config: Config,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Erase reports with their results, their documents and everything else of them.

    The service may run. An interrupted command is completed by repeating it.
    """
    identifier = given.pop("identifier")
    if bool(report_ids) == bool(identifier):
        raise click.UsageError("name reports by their ids, or one by --identifier")

    async def ids_of(console: TenantConsole) -> _Meant:
        if identifier:
            return _Meant((console.tenant.resource_id(type_name, *identifier),))
        return _Meant(tuple(dict.fromkeys(map(id_of, report_ids))))

    _run(config, tenant_id, ids_of, _Options(as_json=as_json, **given))


@erase.command(
    short_help="Erase all reports of a patient.",
    epilog="""\b
Examples:
  fhirpub erase patient 1cd0… --tenant 5f0c… --reason "request of 2026-11-03" --dry-run
  fhirpub erase patient --identifier 'https://registry.example/persons|4711' --tenant 5f0c… \\
      --reason "request of 2026-11-03" --yes
""",
)
@click.argument("patient_ids", metavar="[PATIENT_ID]...", nargs=-1)
@_by_identifier
@_of_tenant
@_with_order
@with_config
@with_json
def patient(
    patient_ids: tuple[str, ...],
    tenant_id: str,
    config: Config,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Erase everything that refers to a patient, with what was stated about the patient.

    Reports that belonged to the patient in an earlier version, and were moved to another one, are
    named and not erased: `fhirpub erase report` does that.
    """
    identifier = given.pop("identifier")
    if bool(patient_ids) == bool(identifier):
        raise click.UsageError("name patients by their ids, or by --identifier")

    async def ids_of(console: TenantConsole) -> _Meant:
        tenant, context = console.tenant, console.context
        ids: Iterable[str] = map(id_of, patient_ids)
        if identifier:
            ids = await patients_by_identifier(identifier, tenant=tenant, context=context)
        found = await resources_of(ids, tenant=tenant, context=context)
        return _Meant(tuple(found.resources), found.moved)

    _run(config, tenant_id, ids_of, _Options(as_json=as_json, **given))


@erase.command(
    name="expired",
    short_help="Erase what the retention policies name.",
    epilog="""\b
Examples:
  fhirpub erase expired --tenant 5f0c… --dry-run
  fhirpub erase expired --tenant 5f0c… --yes
""",
)
@_of_tenant
@click.option("--yes", is_flag=True, help="Do not ask; erased content does not come back.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@with_config
@with_json
def expired_(tenant_id: str, config: Config, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Erase what [retention] policies name now, as the daily round does.

    What is on hold is left out.
    """
    policies = policies_of(config.retention)
    if not policies:
        raise click.ClickException("[retention] policies has none")

    async def ids_of(console: TenantConsole) -> _Meant:
        check_policies(policies, console.context)
        ids: dict[str, None] = {}
        for policy in policies:
            async for one in expired(policy, tenant=console.tenant, context=console.context):
                ids[one] = None
        return _Meant(tuple(ids), leaves_out_holds=True)

    options = _Options(
        reason="retention policies",
        operator=OPERATOR,
        allow_reuse=False,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
    _run(config, tenant_id, ids_of, options)


erase.add_command(list_)
erase.add_command(export)
erase.add_command(resume)


@dataclass(frozen=True, slots=True)
class _Meant:
    """The ids of what is to be erased, and what is named but not erased, with types by id."""

    ids: tuple[str, ...]
    moved: Mapping[str, str] = field(default_factory=dict)
    leaves_out_holds: bool = False


_IdsOf = Callable[[TenantConsole], Awaitable[_Meant]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    reason: str
    operator: str
    allow_reuse: bool
    dry_run: bool
    yes: bool
    as_json: bool

    @property
    def note(self) -> Note:
        return Note(self.operator, self.reason, allows_reuse=self.allow_reuse)


def _run(config: Config, tenant_id: str, ids_of: _IdsOf, options: _Options) -> None:
    if not (options.yes or options.dry_run) and (options.as_json or not is_terminal(sys.stdin)):
        raise click.UsageError("erasing is final: add --yes, or --dry-run to see what would go")
    try:
        erased, moved = asyncio.run(_erase(config, tenant_id, ids_of, options))
    except KeyboardInterrupt:
        raise click.ClickException(
            "interrupted; repeat the command, or run `fhirpub erase resume`, to complete it"
        ) from None
    _show(erased, moved, options)


async def _erase(
    config: Config, tenant_id: str, ids_of: _IdsOf, options: _Options
) -> tuple[list[Erased], Mapping[str, str]]:
    async with open_console(config, tenant_id) as console:
        work = Work(config, console)
        meant = await ids_of(console)
        planned = await work.plan(meant.ids, leaves_out_holds=meant.leaves_out_holds)
        if options.dry_run:
            return planned, meant.moved
        if not options.yes:
            await asyncio.to_thread(_ask, planned)
        await work.resume()
        work.refused.clear()
        erased = await work.erase(planned, options.note)
        report_refused(work)
        return erased, meant.moved


def _ask(planned: Sequence[Erased]) -> None:
    print_table(records_of(planned), as_json=False, empty="There is nothing to erase.")
    if planned:
        click.confirm("Erase this for good?", abort=True)


def _show(erased: Sequence[Erased], moved: Mapping[str, str], options: _Options) -> None:
    named = [f"{type_name}/{id_}" for id_, type_name in moved.items()]
    if options.as_json:
        print_json(
            {
                "erased": [asdict(one) for one in erased],
                "moved": named,
                "dry_run": options.dry_run,
            }
        )
        return
    records: Sequence[Record] = records_of(erased)
    print_table(records, as_json=False, empty="There is nothing to erase.")
    if named:
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        click.echo(
            f"{', '.join(named[:_MOST_NAMED])}{more} belonged to the patient in an earlier "
            "version and to another one now. Erase them by `fhirpub erase report` if they are "
            "meant as well.",
            err=True,
        )
    before = [f"{one.type}/{one.id}" for one in erased if not one.versions]
    if before:
        click.echo(f"Erased before, see `fhirpub erase list`: {', '.join(before)}.", err=True)
    if not options.dry_run:
        for line in rest_of(erased):
            click.echo(line, err=True)
