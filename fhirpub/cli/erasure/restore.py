"""``fhirpub restore``: erase again what a restored backup has brought back."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import click

from fhirpub.app.console import open_console
from fhirpub.app.stores import open_store
from fhirpub.cli.erasure.work import Work, records_of, rest_of
from fhirpub.cli.options import EXISTING_FILE, with_config, with_json
from fhirpub.cli.printing import print_json, print_table
from fhirpub.config.settings import Config
from fhirpub.interactions.erasure.erase import Erased
from fhirpub.storage.erasure.contract import Erasure, Hold

_KINDS = {"int": int, "str": str, "bool": bool}


@click.command(
    epilog="""\b
Example, before a restored store is served:
  fhirpub restore --erasures erasures.jsonl
"""
)
@click.option(
    "--erasures",
    "file",
    required=True,
    type=EXISTING_FILE,
    metavar="FILE",
    help="What `fhirpub erase export` wrote after the last erasure.",
)
@with_config
@with_json
def restore(file: Path, config: Config, *, as_json: bool) -> None:
    """Repeat erasures and holds on a store that was restored from a backup of before.

    What the backup does not have is erased as well: its identifier stays taken. A hold that the
    backup has forbids none of them. Repeating the command is safe.
    """
    records = _read(file)
    erased, unknown = asyncio.run(_repeat(config, records))
    if as_json:
        print_json({"erased": [asdict(one) for one in erased], "unknown_tenants": unknown})
        return
    print_table(records_of(erased), as_json=False, empty="The file has no orders.")
    for tenant in unknown:
        click.echo(f"The store has no tenant {tenant}: its orders were passed over.", err=True)
    for line in rest_of(erased):
        click.echo(line, err=True)


def _read(file: Path) -> list[Erasure | Hold]:
    """Return what is in a file; raises ClickException with all lines that are wrong."""
    records: list[Erasure | Hold] = []
    wrong: list[int] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            records.append(_record_of(json.loads(line)))
        except (ValueError, TypeError):
            wrong.append(number)
    if wrong:
        raise click.ClickException(
            f"{file}: not written by `fhirpub erase export`: line {', '.join(map(str, wrong))}"
        )
    return records


def _record_of(members: Mapping[str, Any]) -> Erasure | Hold:
    """Return the order of a line, to be carried out in another store, or the hold.

    Raises TypeError.
    """
    record = Hold(**members) if "since" in members else Erasure(**members)
    for each in fields(record):
        kind = _KINDS.get(str(each.type))
        if kind and type(getattr(record, each.name)) is not kind:
            raise TypeError(each.name)
    return record if isinstance(record, Hold) else replace(record, version=0, finished=None)


async def _repeat(
    config: Config, records: Sequence[Erasure | Hold]
) -> tuple[list[Erased], list[str]]:
    by_tenant: defaultdict[str, list[Erasure | Hold]] = defaultdict(list)
    for record in records:
        by_tenant[record.tenant].append(record)
    async with open_store(config, create=False) as store:
        known = {tenant.id for tenant in await store.tenants()}
    erased: list[Erased] = []
    for tenant_id in sorted(by_tenant.keys() & known):
        async with open_console(config, tenant_id) as console:
            ours = by_tenant[tenant_id]
            orders = [one for one in ours if isinstance(one, Erasure)]
            erased += await Work(config, console).repeat(orders)
            for hold in ours:
                if isinstance(hold, Hold):
                    await console.store.put_hold(hold)
    return erased, sorted(by_tenant.keys() - known)
