"""``fhirpub sample``: fills a store with reports of invented people, for trials."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, date, datetime, timedelta

import click

from fhirpub.administration import tenants
from fhirpub.administration.context import Administration
from fhirpub.app.administration import open_administration
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_record
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.cli.sample.fill import TYPE, Filling
from fhirpub.cli.sample.reports import DAYS, LABORATORY, Plan
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.plugin_host.loader import load
from fhirpub.runtime.clock import now_ms
from fhirpub.tenant import Tenant

_FIRST_DAY = "2025-01-01"
_MAX_SEED = 40


def _seed(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Return a word that can be part of an identifier."""
    if not (text.isascii() and text.isalnum() and len(text) <= _MAX_SEED):
        raise click.BadParameter(f"must be letters and digits, {_MAX_SEED} at most")
    return text


def _day(_context: click.Context, _option: click.Parameter, day: datetime) -> date:
    """Return a day after which there was a year."""
    if day.date() + timedelta(days=DAYS) > datetime.fromtimestamp(now_ms() / 1000, UTC).date():
        raise click.BadParameter(f"must be {DAYS} days ago or earlier: no report is of tomorrow")
    return day.date()


@click.command(
    short_help="Fill a store with invented reports, for trials.",
    epilog="""\b
Examples:
  fhirpub sample --reports 1000              adds a tenant for them, if there is none yet
  fhirpub sample --reports 200 --tenant ID --seed b
""",
)
@click.option(
    "--reports", type=click.IntRange(1), required=True, metavar="N", help="Number of reports."
)
@click.option(
    "--tenant",
    "named",
    metavar="TENANT",
    help=f"Whose reports they are: id, key or name; default: {LABORATORY}, added if needed.",
)
@click.option(
    "--seed",
    default="a",
    show_default=True,
    metavar="WORD",
    callback=_seed,
    help="The same word gives the same reports; another one gives others.",
)
@click.option(
    "--patients",
    type=click.IntRange(1),
    metavar="M",
    help="Number of people; default: one for five reports.",
)
@click.option(
    "--from",
    "first_day",
    type=click.DateTime(["%Y-%m-%d"]),
    default=_FIRST_DAY,
    show_default=True,
    metavar="DATE",
    callback=_day,
    help="First day of the year over which the reports are spread.",
)
@with_json
@with_config
def sample(  # noqa: PLR0913 - the options of a command
    reports: int,
    named: str | None,
    seed: str,
    patients: int | None,
    first_day: date,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Publish reports of invented people: results, documents, corrections.

    They enter the store as if the service had received them: validated, with versions, search
    values and events; a service that runs need not stop. Repeated with the same options, the
    command adds nothing, and what was interrupted goes on. In production it refuses.
    """
    if config.auth.environment == "production":
        raise ConfigurationError(
            '[auth] environment is "production": invented reports do not belong there'
        )
    plan = Plan(seed=seed, first_day=first_day, patients=patients)
    record = asyncio.run(_fill(config, named, plan, reports))
    print_record("Published", record, as_json=as_json, then=_next_steps(record["tenant"]))


async def _fill(config: Config, named: str | None, plan: Plan, reports: int) -> Record:
    if TYPE not in load(config.plugins.enabled):
        raise ConfigurationError("[plugins] enabled: the plugin diagnosticreport is needed")
    async with open_administration(config) as administration:
        tenant = await _tenant(administration, named)
        filling = Filling(tenant, await administration.context(), plan)
        line, began = ProgressLine(at_once=False), time.monotonic()
        async with administration.recorded("sample", tenant=tenant.id):
            await filling.run(
                reports, show=lambda: line.show(lambda: f"{filling.done:,} of {reports:,} reports")
            )
        line.end()
        seconds = time.monotonic() - began
    counts = {name.replace(" ", "_"): filling.counts[name] for name in _COUNTED}
    rate = round(reports / seconds, 1)
    return {"tenant": tenant.id, "reports": reports, **counts, "reports_per_second": rate}


_COUNTED = ("registered", "revised", "updated", "there already", "of other content", "erased")


async def _tenant(administration: Administration, named: str | None) -> Tenant:
    """Return the tenant that is named by its id, key or name, or the usual one."""
    store = administration.store
    if named is not None:
        return await require_enabled_tenant(store, (await administration.tenant(named)).id)
    for tenant in await store.tenants():
        if tenant.name == LABORATORY and not tenant.disabled:
            return tenant
    added = await tenants.add(administration, name=LABORATORY)
    return await require_enabled_tenant(store, added["id"])


def _next_steps(tenant: str) -> str:
    return f"""
To try next, with the same --config:
  fhirpub client add --tenant {tenant} --scope system/*.rs
  fhirpub serve
  TOKEN=$(FHIRPUB_CLIENT_ID=... FHIRPUB_CLIENT_SECRET=... fhirpub token)
  curl -H "Authorization: Bearer $TOKEN" \\
    "http://127.0.0.1:8080/fhir/r4/Observation?code=http://loinc.org|718-7&_sort=-date"
"""
