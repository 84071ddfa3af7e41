"""``fhirpub quota``: limits of single tenants and clients, and their use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import click

from fhirpub.app.changes import recorded
from fhirpub.app.stores import open_store
from fhirpub.auth.tenants import require_tenant
from fhirpub.cli.options import Command, with_config, with_json
from fhirpub.cli.printing import Record, print_json, print_record, print_table
from fhirpub.cli.quota.usage import OwnerState, QuotaState, states_of_tenant
from fhirpub.config.reader import LARGEST
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.web.admission.quota_policy import Kind, Limits, quota_names

_DEFAULT = "default"
_HELP = {
    "requests_per_minute": "Requests per minute.",
    "requests_at_a_time": "Requests in progress at the same time.",
    "bytes_per_day": "Bytes of request bodies per day (UTC).",
    "registrations_per_day": "Registered resources per day (UTC).",
    "stored_bytes": "Bytes of versions and documents in the store; of a tenant only.",
}


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
            f"--{name.replace('_', '-')}", name, type=_Limit(), metavar="N", help=_HELP[name]
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
@click.option("--tenant", "tenant_id", metavar="ID", help="The tenant whose limits to set.")
@click.option("--client", "client_id", metavar="ID", help="The client whose limits to set.")
@_with_limits
@with_config
@with_json
def set_(
    tenant_id: str | None,
    client_id: str | None,
    config: Config,
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
    kind: Kind = "client" if tenant_id is None else "tenant"
    owner = str(tenant_id or client_id)
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise click.UsageError("name at least one limit")
    state = asyncio.run(_set(config, kind, owner, _overrides(kind, owner, given)))
    quotas = {item.limit_name: _shown(item) for item in state.quotas}
    print_record("Quotas set.", {kind: owner, **quotas}, as_json=as_json)


@quota.command(
    epilog="""\b
Example:
  fhirpub quota show --tenant 5f0c… --json
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="The tenant to show.")
@with_config
@with_json
def show(tenant_id: str, config: Config, *, as_json: bool) -> None:
    """Show the limits of a tenant and of its clients, and what is used of them.

    Requests count in the current minute; bytes and registrations since midnight UTC. Only what
    has a limit is counted, except for stored bytes.
    """
    states = asyncio.run(_states(config, tenant_id))
    if as_json:
        tenant, *clients = map(_record, states)
        print_json({**tenant, "clients": clients})
        return
    rows = [_row(state, item) for state in states for item in state.quotas]
    print_table(rows, as_json=False, empty="")


def _overrides(kind: Kind, owner: str, given: Mapping[str, int | str]) -> list[QuotaOverride]:
    names = quota_names(kind)
    unknown = [name for name in given if name not in names]
    if unknown:
        option = f"--{unknown[0].replace('_', '-')}"
        raise click.UsageError(f"{option} is a limit of tenants, not of clients")
    return [
        QuotaOverride(owner, names[name], limit if isinstance(limit, int) else None)
        for name, limit in given.items()
    ]


async def _set(
    config: Config, kind: Kind, owner: str, overrides: Sequence[QuotaOverride]
) -> OwnerState:
    async with open_store(config) as store:
        tenant_id = owner
        if kind == "client":
            client = await store.client(owner)
            if client is None:
                raise NoSuchRecord("client", owner)
            tenant_id = client.tenant
        await require_tenant(store, tenant_id)
        what = (kind.capitalize(), owner)
        async with recorded(config, store, "quota.set", what, tenant=tenant_id):
            await store.put_quota_overrides(overrides)
        states = await states_of_tenant(store, tenant_id, config.quotas, now=now_ms())
        return next(state for state in states if (state.kind, state.id) == (kind, owner))


async def _states(config: Config, tenant_id: str) -> list[OwnerState]:
    async with open_store(config) as store:
        return await states_of_tenant(store, tenant_id, config.quotas, now=now_ms())


def _shown(item: QuotaState) -> int | None:
    return item.limit or None


def _record(state: OwnerState) -> Record:
    key = "tenant" if state.kind == "tenant" else "client_id"
    quotas = [
        {
            "quota": item.limit_name,
            "limit": _shown(item),
            "set_by": _set_by(item),
            "used": item.used,
        }
        for item in state.quotas
    ]
    return {key: state.id, "name": state.name, "quotas": quotas}


def _row(state: OwnerState, item: QuotaState) -> Record:
    return {
        "of": state.kind,
        "id": state.id,
        "quota": item.limit_name,
        "limit": _shown(item),
        "set_by": _set_by(item),
        "used": item.used,
    }


def _set_by(item: QuotaState) -> str:
    return "quota set" if item.is_override else "[quotas]"
