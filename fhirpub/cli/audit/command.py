"""``fhirpub audit``: list, export and verify the audit trail."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click
import orjson

from fhirpub.app.changes import record_read
from fhirpub.audit.chain import records_of
from fhirpub.audit.checkpoint import TYPE
from fhirpub.audit.record import key_of, unversioned
from fhirpub.audit.verification import Verdict, blocks_of, verify
from fhirpub.auth.statements import StatementReader
from fhirpub.cli.audit.chains import chain_name, chains_meant, open_trail
from fhirpub.cli.options import EXISTING_FILE, with_config, with_json
from fhirpub.cli.printing import Record, print_json, print_table
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.cli.time_types import UtcTimeType
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.audit_contract import HASH_BYTES, AuditBlock, AuditQuery
from fhirpub.storage.store import Store

_PAGE = 50

_of_tenant = click.option(
    "--tenant",
    "tenant_id",
    metavar="ID",
    help="Only records of this tenant; `service` for those that belong to no tenant.",
)


@click.group()
def audit() -> None:
    """List, export and verify the records of who did what."""


@audit.command(
    name="list",
    epilog="""\b
Examples:
  fhirpub audit list --tenant 5f0c… --patient Patient/1cd0… --since 2026-11-01
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
@with_config
@with_json
def list_(tenant_id: str | None, config: Config, *, as_json: bool, **wanted: Any) -> None:
    """List records, newest first."""
    found = asyncio.run(_list(config, tenant_id, wanted))
    if as_json:
        print_json(found)
        return
    print_table([_row(record) for record in found], as_json=False, empty="No records.")


async def _list(
    config: Config, tenant_id: str | None, wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    async with open_trail(config) as store:
        found: list[dict[str, Any]] = []
        for tenant in await chains_meant(store, tenant_id):
            number = 0
            async for record in _find(store, tenant, wanted):
                found.append({"tenant": chain_name(tenant), **record})
                number += 1
                if number == wanted["limit"]:
                    break
            await record_read(config, store, "audit.search", tenant=tenant)
        return found


async def _find(
    store: Store, tenant: str, wanted: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """Yield the records of a tenant that are wanted, newest first."""
    keys = tuple(
        key_of(tenant, kind, unversioned(wanted[kind]))
        for kind in ("patient", "entity", "agent")
        if wanted[kind]
    )
    before = None
    while True:
        query = AuditQuery(
            keys=keys, since=wanted["since"], until=wanted["until"], before=before, limit=_PAGE
        )
        page = await store.find_audit_blocks(tenant, query)
        for block in page:
            for record in reversed(records_of(block)):
                members = orjson.loads(record)
                if _matches(members, wanted):
                    yield members
        if not page:
            return
        before = page[-1].place


def _matches(members: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    since, until = wanted["since"] or 0, wanted["until"]
    if members["at"] < since or (until is not None and members["at"] >= until):
        return False
    if wanted["action"] and members["action"] != wanted["action"]:
        return False
    if wanted["patient"] and wanted["patient"] not in members.get("patients", ()):
        return False
    names = map(unversioned, members.get("what", ()))
    if wanted["entity"] and unversioned(wanted["entity"]) not in names:
        return False
    agents = (members.get("client"), members.get("user"))
    return not wanted["agent"] or wanted["agent"] in agents


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
@with_config
def export(tenant_id: str | None, out: Path | None, config: Config) -> None:
    """Write whole chains as lines of JSON, oldest first, with the hash after each record.

    A hash is SHA-256 over the hash before it and the record, whose bytes are its line in
    `records`; so each line can be verified without the store.
    """
    try:
        file = sys.stdout if out is None else out.open("x", encoding="utf-8")
    except OSError as problem:
        raise click.ClickException(f"{out} cannot be created: {problem.strerror}") from None
    line = ProgressLine(at_once=False)
    try:
        written = asyncio.run(_export(config, tenant_id, file, line))
    finally:
        line.end()
        if out is not None:
            file.close()
    click.echo(f"{written:,} records exported.", err=True)


async def _export(
    config: Config, tenant_id: str | None, file: TextIO, progress: ProgressLine
) -> int:
    written = 0
    async with open_trail(config) as store:
        for tenant in await chains_meant(store, tenant_id):
            await record_read(config, store, "audit.export", tenant=tenant)
            async for block in blocks_of(store, tenant):
                lines = [*_exported(block)]
                file.writelines(lines)
                written += len(lines)
                progress.show(partial("{:,} records".format, written))
    return written


def _exported(block: AuditBlock) -> Iterator[str]:
    for place, record in enumerate(records_of(block)):
        end = block.hashes[place * HASH_BYTES : (place + 1) * HASH_BYTES]
        line = {
            "tenant": chain_name(block.tenant),
            "block": block.number,
            "place": place,
            "hash": end.hex(),
            "record": record.decode(),
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


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
@with_config
@with_json
def verify_(
    tenant_id: str | None, checkpoints: Path | None, config: Config, *, as_json: bool
) -> None:
    """Verify that no record was changed, removed, inserted or moved; exit status 1 if one was.

    Each record must follow from those before it, and each signed checkpoint must attest the chain
    up to its block.
    """
    outside = _read_checkpoints(checkpoints)
    line = ProgressLine(at_once=False)
    try:
        verdicts = asyncio.run(_verify(config, tenant_id, outside, line))
    finally:
        line.end()
    records = [_verdict_record(verdict) for verdict in verdicts]
    print_table(records, as_json=as_json, empty="No records.")
    sys.exit(any(verdict.problem for verdict in verdicts))


def _read_checkpoints(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return [json.loads(line)["checkpoint"] for line in file.read_text().splitlines()]
    except (ValueError, KeyError, TypeError, OSError):
        raise ConfigurationError(
            f"{file} is not a file of checkpoints: each line must be one as the service writes it"
        ) from None


async def _verify(
    config: Config, tenant_id: str | None, outside: Sequence[str], progress: ProgressLine
) -> list[Verdict]:
    def show(verdict: Verdict) -> None:
        name = chain_name(verdict.tenant)
        progress.show(lambda: f"{name}: {verdict.records:,} records")

    async with open_trail(config) as store:
        read = StatementReader(store, type_=TYPE).read
        begin = partial(verify, store, read=read, now=now_ms(), outside=outside, on_progress=show)
        chains = await chains_meant(store, tenant_id)
        verdicts = [await begin(tenant) for tenant in chains]
        for tenant in chains:
            await record_read(config, store, "audit.verify", tenant=tenant)
        return verdicts


def _verdict_record(verdict: Verdict) -> Record:
    return {
        "tenant": chain_name(verdict.tenant),
        "records": verdict.records,
        "blocks": verdict.blocks,
        "checkpoints": verdict.checkpoints,
        "from": None if verdict.first is None else instant(verdict.first),
        "to": None if verdict.last is None else instant(verdict.last),
        "verdict": "right" if verdict.problem is None else str(verdict.problem),
    }
