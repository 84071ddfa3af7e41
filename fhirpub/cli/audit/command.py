"""``fhirpub audit``: list, export and verify the audit trail."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click

from fhirpub.administration.audit import operations
from fhirpub.administration.audit.chains import chain_name
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.options import EXISTING_FILE, with_json
from fhirpub.cli.printing import Record, print_json, print_table
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.cli.time_types import UtcTimeType
from fhirpub.errors import ConfigurationError
from fhirpub.fhir.times import instant

_PAGE, _CHECKPOINTS = 1_000, 1_000
_RIGHT = "right"
_Checkpoint = tuple[str, str | None]
"""What was signed, and the chain that its line names, if it names one."""

_of_tenant = click.option(
    "--tenant",
    "tenant_id",
    metavar="TENANT",
    help="Only records of this tenant; `service` for those that belong to no tenant.",
)


@click.group()
def audit() -> None:
    """List, export and verify the records of accesses."""


@audit.command(
    name="list",
    epilog="""\b
Examples:
  fhirpub audit list --tenant 5f0c… --patient Patient/1cd0… --since 2026-11-01T00:00:00Z
  fhirpub audit list --tenant service --json
""",
)
@_of_tenant
@click.option("--patient", metavar="Patient/ID", help="Only records that name this patient.")
@click.option("--entity", metavar="TYPE/ID", help="Only records that name this resource.")
@click.option("--agent", metavar="ID", help="Only records of this client, or of this user.")
@click.option("--action", metavar="NAME", help="Only records of this action, such as read.")
@click.option("--since", type=UtcTimeType(), help="Only records of this time or later (UTC).")
@click.option("--until", type=UtcTimeType(), help="Only records before this time (UTC).")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=50,
    help="Maximum number for each tenant; default: 50.",
)
@with_target
@with_json
def list_(
    tenant_id: str | None, limit: int, target: Target, *, as_json: bool, **wanted: Any
) -> None:
    """List records, newest first."""
    for name in ("since", "until"):
        wanted[name] = None if wanted[name] is None else instant(wanted[name])
    found = target.run(lambda call: _list_all(call, tenant_id, wanted, limit), creates_store=False)
    if as_json:
        print_json(found)
        return
    print_table([_row(record) for record in found], as_json=False, empty="No records.")


async def _chains(call: Caller, tenant_id: str | None) -> Sequence[str]:
    """Return the names of the chains that are meant."""
    if tenant_id is not None:
        return [tenant_id]
    chains: list[str] = await call(operations.CHAINS)
    return chains


async def _list_all(
    call: Caller, tenant_id: str | None, wanted: Record, limit: int
) -> list[Record]:
    """Return records of every chain that is meant, at most ``limit`` of each."""
    found: list[Record] = []
    for chain in await _chains(call, tenant_id):
        found += await _list(call, chain, wanted, limit)
    return found


async def _list(call: Caller, chain: str, wanted: Record, limit: int) -> list[Record]:
    found: list[Record] = []
    following = None
    while len(found) < limit:
        page = await call(
            operations.LIST,
            chain=chain,
            limit=min(_PAGE, limit - len(found)),
            **wanted,
            **{"from": following},
        )
        found += page["records"]
        following = page["following"]
        if following is None:
            break
    return found


def _row(record: Mapping[str, Any]) -> Record:
    named = [*record.get("patients", ()), *record.get("what", ())]
    return {
        "time": instant(record["at"]),
        "tenant": record["tenant"],
        "agent": record.get("client") or record.get("user"),
        "from": record.get("address") or record.get("host"),
        "action": record["action"],
        "status": record["status"],
        "what": ", ".join(named[:3]) + (", …" if len(named) > 3 else ""),
    }


@audit.command(
    epilog="""\b
Example:
  fhirpub audit export --tenant 5f0c… --out audit.ndjson
"""
)
@_of_tenant
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A new file to write to; default: standard output.",
)
@with_target
def export(tenant_id: str | None, out: Path | None, target: Target) -> None:
    """Write whole chains as lines of JSON, oldest first, with the hash after each record.

    A hash is SHA-256 over the hash before it and the record, whose bytes are its line in
    `records`; so each line can be verified without the store.
    """
    file = sys.stdout if out is None else _create(out)
    line = ProgressLine(at_once=False)
    try:
        written = target.run(
            lambda call: _export(call, tenant_id, file, line), creates_store=False
        )
    finally:
        line.end()
        if out is not None:
            file.close()
    click.echo(f"{written:,} records exported.", err=True)


def _create(file: Path) -> TextIO:
    try:
        return file.open("x", encoding="utf-8")
    except OSError as problem:
        raise click.ClickException(f"{file} cannot be created: {problem.strerror}") from None


async def _export(
    call: Caller, tenant_id: str | None, file: TextIO, progress: ProgressLine
) -> int:
    written = 0
    for chain in await _chains(call, tenant_id):
        after: int | None = 0
        while after is not None:
            page = await call(operations.EXPORT, chain=chain, after=after)
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in page["records"])
            written, after = written + len(page["records"]), page["following"]
            progress.show(partial("{:,} records".format, written))
    return written


@audit.command(
    name="verify",
    epilog="""\b
Example, with the checkpoints that were kept elsewhere:
  fhirpub audit verify --checkpoints /mnt/append-only/checkpoints.ndjson
""",
)
@_of_tenant
@click.option(
    "--checkpoints",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Checkpoints that were written to [audit] checkpoints_file: they show records that were "
    "removed from the end, and chains that were made with a stolen key.",
)
@with_target
@with_json
def verify_(
    tenant_id: str | None, checkpoints: Path | None, target: Target, *, as_json: bool
) -> None:
    """Verify that no record was changed, removed, inserted or moved; exit status 1 if one was.

    Each record must follow from those before it, and each signed checkpoint must attest the chain
    up to its block.
    """
    outside = _read_checkpoints(checkpoints)
    line = ProgressLine(at_once=False)

    async def work(call: Caller) -> list[Record]:
        verdicts: list[Record] = []
        for chain in await _chains(call, tenant_id):
            line.show(partial("{}: verifying".format, chain))
            verdicts.append(await _verify(call, chain, outside))
        return verdicts

    try:
        verdicts = target.run(work, creates_store=False)
    finally:
        line.end()
    print_table(verdicts, as_json=as_json, empty="No records.")
    sys.exit(any(verdict["verdict"] != _RIGHT for verdict in verdicts))


async def _verify(call: Caller, chain: str, outside: Sequence[_Checkpoint]) -> Record:
    """Return the verdict on a chain, by as many of its checkpoints at a time as a call takes."""
    if len(outside) <= _CHECKPOINTS:
        every = [signed for signed, _chain in outside] or None
        return dict(await call(operations.VERIFY, chain=chain, checkpoints=every))
    verdict: Record = await call(operations.VERIFY, chain=chain)
    own = [signed for signed, of in outside if of in (None, verdict["tenant"])]
    for start in range(0, len(own), _CHECKPOINTS):
        if verdict["verdict"] != _RIGHT:
            break
        some = own[start : start + _CHECKPOINTS]
        found = await call(operations.VERIFY, chain=chain, checkpoints=some)
        verdict = {**found, "checkpoints": verdict["checkpoints"] + len(some)}
    return verdict


def _read_checkpoints(file: Path | None) -> list[_Checkpoint]:
    if file is None:
        return []
    try:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        return [(line["checkpoint"], _chain_of(line)) for line in lines]
    except (ValueError, KeyError, TypeError, OSError):
        raise ConfigurationError(
            f"{file} is not a file of checkpoints: each line must be one as the service writes it"
        ) from None


def _chain_of(line: Mapping[str, Any]) -> str | None:
    return chain_name(line["tenant"]) if "tenant" in line else None
