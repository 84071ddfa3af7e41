"""The audit trail of one process: it takes records, hands them on, and seals them in its turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from fhirpub.audit.record import Access, Agent, encode, name_of
from fhirpub.audit.recorder import Recorder
from fhirpub.audit.sealer import Sealer
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.logging import logger
from fhirpub.storage.contract import CredentialStore

SERVICE = ""
"""The tenant of records that belong to no tenant."""
REFUSALS_SECONDS = 10.0
_MAX_REFUSALS = 1_000
"""The maximum number of kinds of refusals that are counted apart."""
_MAX_CLIENTS = 100

_log = logger()
_Refusal = tuple[str, int, str, str]
RecordAt = Callable[[int], bytes]
"""Returns a record with its time, in milliseconds."""


class AuditTrail:
    """Takes the records of one process; for one event loop."""

    def __init__(
        self,
        recorder: Recorder,
        sealer: Sealer,
        *,
        access: CredentialStore,
        config: AuditConfig,
        clock: Clock,
    ) -> None:
        self._recorder = recorder
        self._sealer = sealer
        self._access = access
        self._clock = clock
        self._refusals: Counter[_Refusal] = Counter()
        self.records_reads = config.reads != "off"
        """Whether what changes nothing is recorded."""
        self.waits = config.reads == "before_answer"
        """Whether a response waits until its record is durable."""

    def note(self, tenant: str, record: RecordAt) -> None:
        """Record an access within about a second. Raises StoreUnavailable if too many wait."""
        at = self._clock()
        self._recorder.note(tenant, record(at), at=at)

    async def write(self, tenant: str, record: RecordAt) -> None:
        """Record an access durably. Raises StoreUnavailable."""
        at = self._clock()
        await self._recorder.write(tenant, record(at), at=at)

    def count_refusal(self, action: str, status: int, *, address: str, client: str = "") -> None:
        """Count a refusal without a token; those of some seconds are one record.

        Args:
            action: What was tried.
            status: The status of the response.
            address: The address of the caller.
            client: The client that the caller claims to be.
        """
        self._count((action, status, client, address), 1)

    def _count(self, kind: _Refusal, number: int) -> None:
        if kind not in self._refusals and len(self._refusals) >= _MAX_REFUSALS:
            action, status, _client, _address = kind
            kind = (action, status, "", "")
        self._refusals[kind] += number

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Hand records on and seal them until the block ends, then finish what is left."""
        work = (
            self._recorder.run(),
            self._sealer.run(),
            self._note_refusals_for_ever(),
            self._sealer.delete_expired_for_ever(),
        )
        tasks = [asyncio.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._finish()

    async def settle(self) -> None:
        """Store what was noted, and seal what is stored if it is this process's turn.

        Raises StoreUnavailable.
        """
        await self.note_refusals()
        await self._recorder.flush()
        while not await self._sealer.seal():
            pass

    async def _finish(self) -> None:
        try:
            await self._sealer.wait()
            await self.note_refusals()
        except StoreUnavailable as problem:
            count = self._refusals.total()
            _log.error("refusals not recorded before the stop", count=count, reason=problem.reason)
        try:
            await self._recorder.finish()
            await self._sealer.finish()
        except StoreUnavailable as problem:  # what is durable is sealed by another process
            _log.warning("audit trail not sealed before the stop", reason=problem.reason)

    async def _note_refusals_for_ever(self) -> None:
        while True:
            await asyncio.sleep(REFUSALS_SECONDS)
            try:
                await self.note_refusals()
            except StoreUnavailable as problem:
                _log.warning("audit trail waits for the store", reason=problem.reason)

    async def note_refusals(self) -> None:
        """Record the refusals that were counted, in the chain of the client if there is one.

        Raises StoreUnavailable; those that are not recorded are counted until the next time.
        """
        refusals, self._refusals = self._refusals, Counter()
        try:
            tenants = await self._tenants_of({client for _, _, client, _ in refusals if client})
            at = self._clock()
            for kind in [*refusals]:
                action, status, client, address = kind
                tenant = tenants.get(client, SERVICE)
                what = (name_of("Client", client),) if client in tenants else ()
                access = Access(action=action, status=status, what=what, count=refusals[kind])
                known = client if client in tenants else ""
                record = encode(access, Agent(client=known, address=address), at=at)
                self._recorder.note(tenant, record, at=at)
                del refusals[kind]
        finally:
            for kind, count in refusals.items():
                self._count(kind, count)

    async def _tenants_of(self, clients: set[str]) -> dict[str, str]:
        """Return the tenants of the clients that exist; of a flood of names, of some."""
        tenants = {}
        for client_id in sorted(clients)[:_MAX_CLIENTS]:
            client = await self._access.client(client_id)
            if client is not None:
                tenants[client_id] = client.tenant
        return tenants
