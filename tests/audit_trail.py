"""Fills the audit trail of a tenant, seals it, and reads it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import orjson

from fhirpub.audit.chain import ENTRY_SPAN_MS, next_blocks, records_of, time_of
from fhirpub.audit.record import Access, Agent, encode
from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config
from fhirpub.storage.audit_contract import AuditStore
from fhirpub.testing.service import Answer, Integrator, RunningService

NOON = 1_800_000_000_000
"""2027-01-15T08:00:00Z, when the trails of tests begin."""
EVENTS = "/fhir/r4/AuditEvent"
AUDITOR = ("system/AuditEvent.rs",)
"""The scope of a client that may read and search events."""
REPORT = "DiagnosticReport/5a5b5c5d-0000-4000-8000-aabbccddeeff"
FILLED_BY_TESTS = Config(audit=AuditConfig(reads="off"))
"""The settings of a service whose trails have what the tests put into them."""
CLIENT = Agent(
    client="0b6c2f1e-4a55-4c6e-9a53-2f3f1f1b7a01",
    environment="sandbox",
    address="192.0.2.7",
    request="r-1",
)


def a_record(
    action: str = "read", *, at: int = NOON, agent: Agent = CLIENT, **access: Any
) -> bytes:
    """Return a record: of a client, unless another agent is given."""
    return encode(Access(action=action, **access), agent, at=at)


async def seal(store: AuditStore, tenant: str, records: Iterable[bytes]) -> None:
    """Hand in records, those of one half hour together, and wait until they are in blocks."""
    for _span, some in groupby(sorted(records, key=time_of), key=_span_of):
        await store.add_audit_records({tenant: b"".join(record + b"\n" for record in some)})
    while True:
        unsealed = await store.unsealed_audit(limit=1_000)
        if unsealed.entries:
            await store.seal_audit(next_blocks(unsealed), unsealed)
        elif unsealed.is_complete:
            return


def fill(service: RunningService, tenant: str, records: Iterable[bytes]) -> None:
    """Put records into the trail of a tenant of a running service."""
    service.call(seal(service.services.store, tenant, records))


def read_chain(lab: Integrator, tenant: str) -> list[dict[str, Any]]:
    """Return the records of a tenant once all of them are sealed."""
    service = lab.service
    assert isinstance(service, RunningService)

    async def read() -> list[dict[str, Any]]:
        audit, store = service.services.audit, service.services.store
        assert audit is not None
        await audit.settle()
        chain = await store.audit_chain(tenant, limit=1_000)
        return [orjson.loads(line) for block in chain for line in records_of(block)]

    return service.call(read())


def records_of_tenant(lab: Integrator, tenant: str | None = None) -> list[dict[str, Any]]:
    """Return all records of the tenant but those of tokens."""
    found = read_chain(lab, lab.tenant.id if tenant is None else tenant)
    return [record for record in found if record["action"] != "token"]


def _span_of(record: bytes) -> int:
    return time_of(record) // ENTRY_SPAN_MS


def events_found(answer: Answer) -> list[dict[str, Any]]:
    """Return the events of a page of a search."""
    assert answer.status == 200, answer.body
    entries = answer.json.get("entry", [])
    return [one["resource"] for one in entries if one["search"]["mode"] == "match"]


def actions_found(answer: Answer) -> list[str]:
    """Return what the events of a page of a search record."""
    return [event["subtype"][-1]["code"] for event in events_found(answer)]
