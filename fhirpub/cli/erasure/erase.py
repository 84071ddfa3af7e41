"""``fhirpub erase``: remove the content of resources for good, on an order."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from fhirpub.administration.erasure import operations
from fhirpub.administration.naming import id_of
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.erasure.carrying_out import carry_out, complete
from fhirpub.cli.erasure.listing import export, list_, resume
from fhirpub.cli.erasure.printing import records_of, rest_of
from fhirpub.cli.options import Command, with_json, with_note
from fhirpub.cli.patient.naming import IdentifierType
from fhirpub.cli.printing import Record, is_terminal, print_json, print_table
from fhirpub.interactions.erasure.retention import OPERATOR

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
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the resources."
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
@with_target
@with_json
def report(
    report_ids: tuple[str, ...],
    type_name: str,
    tenant_id: str,
    target: Target,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Erase reports with their results, their documents and everything else of them.

    This cannot be undone. The service may run. An interrupted command is completed by repeating
    it.
    """
    meant = _reports_meant(report_ids, given.pop("identifier"), type_name)
    _run(target, tenant_id, meant, _Options(as_json=as_json, **given))


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
@with_target
@with_json
def patient(
    patient_ids: tuple[str, ...],
    tenant_id: str,
    target: Target,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Erase everything that refers to a patient, with what was stated about the patient.

    This cannot be undone. Reports that belonged to the patient in an earlier version, and were
    moved to another one, are named and not erased: `fhirpub erase report` does that.
    """
    meant = _patients_meant(patient_ids, given.pop("identifier"))
    _run(target, tenant_id, meant, _Options(as_json=as_json, **given))


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
@with_target
@with_json
def expired_(tenant_id: str, target: Target, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Erase what [retention] policies name now, as the daily round does.

    This cannot be undone. What is on hold is left out.
    """
    options = _Options(
        reason="retention policies",
        operator=OPERATOR,
        allow_reuse=False,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
    _run(target, tenant_id, {"expired": True}, options)


erase.add_command(list_)
erase.add_command(export)
erase.add_command(resume)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    reason: str
    operator: str
    allow_reuse: bool
    dry_run: bool
    yes: bool
    as_json: bool


@dataclass(slots=True)
class _Done:
    """What was planned, and then what was erased; why some were not, and what was moved."""

    erased: list[Record]
    moved: list[str]
    refused: Sequence[str] = ()


def _reports_meant(
    ids: Sequence[str], identifier: Sequence[str] | None, type_name: str
) -> Mapping[str, Any]:
    """Return which reports are meant; raises UsageError unless they are named in one way."""
    if bool(ids) == bool(identifier):
        raise click.UsageError("name reports by their ids, or one by --identifier")
    if identifier:
        return {"report_identifier": "|".join(identifier), "type": type_name}
    return {"reports": list(map(id_of, ids))}


def _patients_meant(ids: Sequence[str], identifier: Sequence[str] | None) -> Mapping[str, Any]:
    """Return which patients are meant; raises UsageError unless they are named in one way."""
    if bool(ids) == bool(identifier):
        raise click.UsageError("name patients by their ids, or by --identifier")
    if identifier:
        return {"patient_identifier": "|".join(identifier)}
    return {"patients": list(map(id_of, ids))}


def _run(target: Target, tenant_id: str, meant: Mapping[str, Any], options: _Options) -> None:
    _refuse_unconfirmed(options)
    try:
        done = planned = target.run(
            lambda call: _plan(call, tenant_id, meant), creates_store=False
        )
        if not options.dry_run:
            done = _carry_out(target, tenant_id, planned, options)
    except KeyboardInterrupt:
        raise click.ClickException(
            "interrupted; repeat the command, or run `fhirpub erase resume`, to complete it"
        ) from None
    if done.refused:
        raise click.ClickException("; ".join(done.refused))
    _show(done, options)


def _refuse_unconfirmed(options: _Options) -> None:
    """Raise UsageError if there is no --yes, and no terminal on which to ask for it."""
    if not (options.yes or options.dry_run) and (options.as_json or not is_terminal(sys.stdin)):
        raise click.UsageError("erasing is final: add --yes, or --dry-run to see what would go")


async def _plan(call: Caller, tenant_id: str, meant: Mapping[str, Any]) -> _Done:
    planned = _Done([], [])
    following: int | None = 0
    while following is not None:
        page = await call(operations.PLAN, tenant=tenant_id, **meant, **{"from": following})
        planned.erased += page["planned"]
        planned.moved, following = page["moved"], page["following"]
    return planned


def _carry_out(target: Target, tenant_id: str, planned: _Done, options: _Options) -> _Done:
    """Erase what was planned, after a question unless there is --yes."""
    if not options.yes:
        _ask(planned.erased)
    return target.run(lambda call: _erase(call, tenant_id, planned, options), creates_store=False)


async def _erase(call: Caller, tenant_id: str, planned: _Done, options: _Options) -> _Done:
    await complete(call, tenant_id)
    names = [f"{one['type']}/{one['id']}" for one in planned.erased]

    async def some(names: Sequence[str]) -> Record:
        erased: Record = await call(
            operations.ERASE,
            tenant=tenant_id,
            resources=names,
            reason=options.reason,
            operator=options.operator,
            allow_reuse=options.allow_reuse,
        )
        return erased

    erased, refused = await carry_out(names, some)
    return _Done(erased, planned.moved, refused)


def _ask(planned: Sequence[Record]) -> None:
    print_table(records_of(planned), as_json=False, empty="There is nothing to erase.")
    if planned:
        click.confirm("Erase this for good?", abort=True)


def _show(done: _Done, options: _Options) -> None:
    erased = done.erased
    if options.as_json:
        print_json({"erased": erased, "moved": done.moved, "dry_run": options.dry_run})
        return
    print_table(records_of(erased), as_json=False, empty="There is nothing to erase.")
    if done.moved:
        _show_moved(done.moved)
    before = [f"{one['type']}/{one['id']}" for one in erased if not one["versions"]]
    if before:
        click.echo(f"Erased before, see `fhirpub erase list`: {', '.join(before)}.", err=True)
    if not options.dry_run:
        for line in rest_of(erased):
            click.echo(line, err=True)


def _show_moved(moved: Sequence[str]) -> None:
    more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
    click.echo(
        f"{', '.join(moved[:_MOST_NAMED])}{more} belonged to the patient in an earlier "
        "version and to another one now. Erase them by `fhirpub erase report` if they are "
        "meant as well.",
        err=True,
    )
