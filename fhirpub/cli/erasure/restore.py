"""``fhirpub restore``: erase again what a restored backup has brought back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from fhirpub.administration import tenants
from fhirpub.administration.erasure import operations
from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.erasure.carrying_out import carry_out
from fhirpub.cli.erasure.printing import records_of, rest_of
from fhirpub.cli.options import EXISTING_FILE, with_json
from fhirpub.cli.printing import Record, print_json, print_table
from fhirpub.errors import InvalidContent
from fhirpub.storage.erasure.contract import Erasure, Hold


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
@with_target
@with_json
def restore(file: Path, target: Target, *, as_json: bool) -> None:
    """Repeat erasures and holds on a store that was restored from a backup of before.

    What the backup does not have is erased as well: its identifier stays taken. A hold that the
    backup has forbids none of them. Repeating the command is safe.
    """
    records = _read(file)
    erased, unknown = target.run(lambda call: _repeat(call, records), creates_store=False)
    if as_json:
        print_json({"erased": erased, "unknown_tenants": unknown})
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
            records.append(operations.record_of(json.loads(line)))
        except (ValueError, TypeError, InvalidContent):
            wrong.append(number)
    if wrong:
        raise click.ClickException(
            f"{file}: not written by `fhirpub erase export`: line {', '.join(map(str, wrong))}"
        )
    return records


async def _repeat(
    call: Caller, records: Sequence[Erasure | Hold]
) -> tuple[list[Record], list[str]]:
    by_tenant: defaultdict[str, list[Erasure | Hold]] = defaultdict(list)
    for record in records:
        by_tenant[record.tenant].append(record)
    known = {one["id"] for one in await call(tenants.LIST)}
    erased: list[Record] = []
    for tenant_id in sorted(by_tenant.keys() & known):
        ours = by_tenant[tenant_id]
        orders = [one for one in ours if isinstance(one, Erasure)]
        some, _refused = await carry_out(orders, partial(_repeat_some, call, tenant_id))
        erased += some
        holds = [asdict(one) for one in ours if isinstance(one, Hold)]
        await _repeat_holds(call, tenant_id, holds)
    return erased, sorted(by_tenant.keys() - known)


async def _repeat_some(call: Caller, tenant_id: str, orders: Sequence[Erasure]) -> Record:
    found = [asdict(one) for one in orders]
    done: Record = await call(operations.REPEAT, tenant=tenant_id, orders=found)
    return done


async def _repeat_holds(call: Caller, tenant_id: str, holds: Sequence[Record]) -> None:
    for start in range(0, len(holds), MAX_AT_ONCE):
        some = holds[start : start + MAX_AT_ONCE]
        await call(operations.REPEAT, tenant=tenant_id, holds=some)
