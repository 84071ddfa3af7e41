"""``fhirpub quota``: limits of single tenants and clients, and their use."""

from __future__ import annotations

from collections.abc import Callable

import click

from fhirpub.administration import quotas
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import Command, with_json
from fhirpub.cli.printing import print_json, print_record, print_table
from fhirpub.config.reader import LARGEST
from fhirpub.web.admission.quota_policy import Limits

_DEFAULT = "default"


class _Limit(click.ParamType[int | str]):
    """A limit, or the word that removes it."""

    name = "limit"

    def convert(
        self, value: int | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or the word."""
        if value == _DEFAULT:
            return _DEFAULT
        try:
            number = int(value)
        except ValueError:
            number = -1
        if not 0 <= number <= LARGEST:
            self.fail(f"{value!r} is neither a number up to {LARGEST} nor {_DEFAULT}", param, ctx)
        return number


def _with_limits(command: Command) -> Command:
    """Add an option for each limit."""
    for name in reversed(Limits._fields):
        option: Callable[[Command], Command] = click.option(
            f"--{name.replace('_', '-')}",
            name,
            type=_Limit(),
            metavar="N",
            help=quotas.MEANINGS[name],
        )
        command = option(command)
    return command


@click.group()
def quota() -> None:
    """Set and show how much tenants and clients may use."""


@quota.command(
    name="set",
    epilog="""\b
Examples:
  fhirpub quota set --tenant 5f0c… --requests-per-minute 600 --stored-bytes 50000000000
  fhirpub quota set --client 0b7e… --registrations-per-day 10000
  fhirpub quota set --client 0b7e… --registrations-per-day default
""",
)
@click.option("--tenant", "tenant_id", metavar="TENANT", help="The tenant whose limits to set.")
@click.option("--client", "client_id", metavar="CLIENT", help="The client whose limits to set.")
@_with_limits
@with_target
@with_json
def set_(
    tenant_id: str | None,
    client_id: str | None,
    target: Target,
    *,
    as_json: bool,
    **limits: int | str | None,
) -> None:
    """Set limits of one tenant or client, instead of those of [quotas]; 0 means no limit.

    `default` removes a limit that was set, so that the setting applies again. Running processes
    apply the change within half a minute.
    """
    if (tenant_id is None) == (client_id is None):
        raise click.UsageError("name either --tenant or --client")
    given = {name: limit for name, limit in limits.items() if isinstance(limit, int)}
    defaults = [name for name, limit in limits.items() if limit == _DEFAULT]
    if not given and not defaults:
        raise click.UsageError("name at least one limit")
    if client_id and limits["stored_bytes"] is not None:
        raise click.UsageError("--stored-bytes is a limit of tenants, not of clients")
    if client_id is None:
        changed = target.call(quotas.SET_OF_TENANT, tenant=tenant_id, defaults=defaults, **given)
    else:
        changed = target.call(quotas.SET_OF_CLIENT, client=client_id, defaults=defaults, **given)
    print_record("Quotas set.", changed, as_json=as_json)


@quota.command(
    epilog="""\b
Example:
  fhirpub quota show --tenant 5f0c… --json
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="TENANT", help="The tenant to show.")
@with_target
@with_json
def show(tenant_id: str, target: Target, *, as_json: bool) -> None:
    """Show the limits of a tenant and of its clients, and what is used of them.

    Requests count in the current minute; bytes and registrations since midnight UTC. Only what
    has a limit is counted, except for stored bytes.
    """
    shown = target.call(quotas.SHOW, tenant=tenant_id)
    if as_json:
        print_json(shown)
        return
    owners = [("tenant", shown["tenant"], shown["quotas"])]
    owners += [("client", one["client_id"], one["quotas"]) for one in shown["clients"]]
    rows = [{"of": kind, "id": id_, **item} for kind, id_, items in owners for item in items]
    print_table(rows, as_json=False, empty="")
