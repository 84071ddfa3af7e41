"""Operations on the audit trail, one chain at a time: that of a tenant, or of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import orjson

from fhirpub.administration.audit.chains import (
    SERVICE_NAME,
    chain_meant,
    chain_name,
    seal_trail,
)
from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.paging import FROM, read_numbers
from fhirpub.audit.chain import records_of
from fhirpub.audit.checkpoint import TYPE
from fhirpub.audit.event import patients_of
from fhirpub.audit.pages import find_candidates
from fhirpub.audit.record import key_of, unversioned
from fhirpub.audit.verification import Verdict, verify
from fhirpub.auth.statements import StatementReader
from fhirpub.fhir.times import instant
from fhirpub.storage.audit_contract import HASH_BYTES, AuditBlock, AuditQuery
from fhirpub.storage.store import Store

Record = Mapping[str, Any]

_PAGE, _MAX_LISTED, _USUAL_LIMIT = 50, 1_000, 50
_PAGE_BYTES = 1024 * 1024
"""After so many bytes of records, an export returns where to go on."""
_OF_CHAIN = Parameter(
    name="chain",
    text=f"The chain: that of a tenant, by its id, key or name, or `{SERVICE_NAME}`.",
    place="path",
    required=True,
)


async def chains(administration: Administration) -> list[str]:
    """Return the names of all chains."""
    await seal_trail(administration.config, administration.store)
    return [chain_name(one) for one in await administration.store.audited_tenants()]


async def list_(administration: Administration, *, chain: str, **given: Any) -> Record:
    """Return records, newest first, and where to go on if there may be more."""
    limit, place = given.get("limit", _USUAL_LIMIT), _Place.read(given.get("from", ""))
    tenant, store = await chain_meant(administration, chain), administration.store
    if place is None:
        await seal_trail(administration.config, store)
    records: list[Record] = []
    following = None
    async for here, record in _find(store, tenant, given, place):
        if len(records) == limit:
            following = str(here)
            break
        records.append({"tenant": chain_name(tenant), **record})
    await administration.record_read("audit.search", tenant=tenant)
    return {"records": records, "following": following}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a list goes on: a block, and how many of its records, newest first, were listed."""

    block: tuple[int, int]
    listed: int

    @classmethod
    def read(cls, text: str) -> _Place | None:
        if not text:
            return None
        last, number, listed = read_numbers(text.split("."), count=3, name="from")
        return cls((last, number), listed)

    def __str__(self) -> str:
        return f"{self.block[0]}.{self.block[1]}.{self.listed}"


async def _find(
    store: Store, tenant: str, wanted: Record, place: _Place | None
) -> AsyncIterator[tuple[_Place, dict[str, Any]]]:
    """Yield the records of a chain that are wanted, newest first, each with its place."""
    before = (place.block[0], place.block[1] + 1) if place else None  # the block itself as well
    while True:
        query = AuditQuery(
            since=wanted.get("since"), until=wanted.get("until"), before=before, limit=_PAGE
        )
        page = await find_candidates(store, tenant, query, _alternatives(tenant, wanted))
        for block in page:
            for number, record in enumerate(reversed(records_of(block))):
                here = _Place(block.place, number)
                if place and here.block == place.block and number < place.listed:
                    continue
                members = orjson.loads(record)
                if _matches(members, wanted):
                    yield here, members
        if not page:
            return
        before = page[-1].place


def _alternatives(tenant: str, wanted: Record) -> Collection[tuple[int, ...]]:
    """Return sets of keys: a block with what is wanted has all keys of one of them.

    A patient may be one that a record concerns, or one that it names.
    """
    kinds = {"patient": ("patient", "entity"), "entity": ("entity",), "agent": ("agent",)}
    named = [(kinds[one], unversioned(wanted[one])) for one in kinds if wanted.get(one)]
    return [*product(*([key_of(tenant, kind, name) for kind in some] for some, name in named))]


def _matches(members: Record, wanted: Record) -> bool:
    since, until = wanted.get("since") or 0, wanted.get("until")
    if members["at"] < since or (until is not None and members["at"] >= until):
        return False
    if wanted.get("action") and members["action"] != wanted["action"]:
        return False
    if wanted.get("patient") and unversioned(wanted["patient"]) not in patients_of(members):
        return False
    names = map(unversioned, members.get("what", ()))
    if wanted.get("entity") and unversioned(wanted["entity"]) not in names:
        return False
    agents = (members.get("client"), members.get("user"))
    return not wanted.get("agent") or wanted["agent"] in agents


async def export(administration: Administration, *, chain: str, after: int = 0) -> Record:
    """Return records as they are in the chain, each with its hash, and where to go on."""
    tenant, store = await chain_meant(administration, chain), administration.store
    if not after:
        await seal_trail(administration.config, store)
    await administration.record_read("audit.export", tenant=tenant)
    lines: list[Record] = []
    size = 0
    while page := await store.audit_chain(tenant, after=after, limit=1):
        (block,) = page
        lines += await asyncio.to_thread(_exported, block)
        after, size = block.number, size + len(block.records)
        if size >= _PAGE_BYTES:
            return {"records": lines, "following": after}
    return {"records": lines, "following": None}


def _exported(block: AuditBlock) -> list[Record]:
    return [
        {
            "tenant": chain_name(block.tenant),
            "block": block.number,
            "place": place,
            "hash": block.hashes[place * HASH_BYTES : (place + 1) * HASH_BYTES].hex(),
            "record": record.decode(),
        }
        for place, record in enumerate(records_of(block))
    ]


async def verify_(
    administration: Administration, *, chain: str, checkpoints: tuple[str, ...] = ()
) -> Record:
    """Verify a chain."""
    tenant, store = await chain_meant(administration, chain), administration.store
    await seal_trail(administration.config, store)
    verdict = await verify(
        store,
        tenant,
        read=StatementReader(store, type_=TYPE).read,
        now=administration.clock(),
        outside=checkpoints,
    )
    await administration.record_read("audit.verify", tenant=tenant)
    return _verdict_record(verdict)


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


CHAINS = Operation(
    command="audit list",
    method="GET",
    path="/audit",
    summary="List the chains of the audit trail: one of each tenant, and one of the service",
    run=chains,
    creates_store=False,
)
LIST = Operation(
    command="audit list --tenant",
    method="GET",
    path="/audit/{chain}/records",
    summary="List records of a chain, newest first",
    run=list_,
    parameters=(
        _OF_CHAIN,
        Parameter(name="patient", text="Only records that name this Patient/ID.", place="query"),
        Parameter(name="entity", text="Only records that name this TYPE/ID.", place="query"),
        Parameter(name="agent", text="Only records of this client or user.", place="query"),
        Parameter(name="action", text="Only records of this action.", place="query"),
        Parameter(name="since", type="instant", text="Only of this time or later.", place="query"),
        Parameter(name="until", type="instant", text="Only before this time.", place="query"),
        Parameter(
            name="limit",
            type="integer",
            text=f"The maximum number; default: {_USUAL_LIMIT}.",
            place="query",
            minimum=1,
            maximum=_MAX_LISTED,
        ),
        Parameter(name="from", text=FROM, place="query"),
    ),
    creates_store=False,
)
EXPORT = Operation(
    command="audit export",
    method="GET",
    path="/audit/{chain}/export",
    summary="Export a chain, oldest first, with the hash after each record",
    run=export,
    parameters=(
        _OF_CHAIN,
        Parameter(
            name="after",
            type="integer",
            text=f"The number of the block behind which it begins. {FROM}",
            place="query",
            minimum=0,
        ),
    ),
    creates_store=False,
)
VERIFY = Operation(
    command="audit verify",
    method="POST",
    path="/audit/{chain}/verify",
    summary="Verify that no record of a chain was changed, removed, inserted or moved",
    run=verify_,
    parameters=(
        _OF_CHAIN,
        Parameter(
            name="checkpoints",
            type="strings",
            text="Signed checkpoints that were kept elsewhere.",
            max_length=8_192,
        ),
    ),
    creates_store=False,
)
OPERATIONS = (CHAINS, LIST, EXPORT, VERIFY)
