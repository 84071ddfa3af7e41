"""``fhirpub hold``: resources and Patients that must not be erased for now."""

from __future__ import annotations

import click

from fhirpub.administration.erasure import holds
from fhirpub.administration.naming import resource_in, why_no_resource
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import with_json, with_note
from fhirpub.cli.printing import Record, print_record, print_table
from fhirpub.fhir.times import instant

_of_tenant = click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Tenant of the resource."
)


class ResourceNameType(click.ParamType[tuple[str, str]]):
    """A resource: its FHIR type, a slash, its id."""

    name = "resource"

    def convert(
        self,
        value: str | tuple[str, str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Return the type and the id."""
        if isinstance(value, tuple):
            return value
        if why_no_resource(value):
            self.fail("is not TYPE/ID, such as DiagnosticReport/7d1a…", param, ctx)
        return resource_in(value)


@click.group()
def hold() -> None:
    """Put resources on legal hold: neither an order nor a retention policy erases them."""


@hold.command(
    epilog="""\b
Examples:
  fhirpub hold add DiagnosticReport/7d1a… --tenant 5f0c… --reason "case 4 C 12/26"
  fhirpub hold add Patient/1cd0… --tenant 5f0c… --reason "case 4 C 12/26"
"""
)
@click.argument("resource", type=ResourceNameType(), metavar="TYPE/ID")
@_of_tenant
@with_note
@with_target
@with_json
def add(
    resource: tuple[str, str],
    tenant_id: str,
    reason: str,
    operator: str,
    target: Target,
    *,
    as_json: bool,
) -> None:
    """Put a resource on hold, or everything that refers to a Patient."""
    type_name, id_ = resource
    added = target.call(
        holds.ADD, tenant=tenant_id, type=type_name, id=id_, reason=reason, operator=operator
    )
    print_record(f"{type_name}/{id_} is on hold", _row(added), as_json=as_json)


@hold.command()
@click.argument("resource", type=ResourceNameType(), metavar="TYPE/ID")
@_of_tenant
@with_target
@with_json
def release(resource: tuple[str, str], tenant_id: str, target: Target, *, as_json: bool) -> None:
    """End a hold."""
    type_name, id_ = resource
    released = target.call(holds.RELEASE, tenant=tenant_id, type=type_name, id=id_)
    print_record(f"{type_name}/{id_} is no longer on hold", released, as_json=as_json)


@hold.command(name="list")
@_of_tenant
@with_target
@with_json
def list_(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """List what is on hold, since when, and why."""
    rows = [_row(one) for one in target.call(holds.LIST, tenant=tenant_id)]
    print_table(rows, as_json=as_json, empty="Nothing is on hold.")


def _row(one: Record) -> Record:
    return {
        "resource": f"{one['type']}/{one['id']}",
        "since": instant(one["since"]),
        "operator": one["operator"],
        "reason": one["reason"],
    }
