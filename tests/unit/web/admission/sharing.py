"""Processes that share a store, which notes what is asked of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fhirpub.auth.caller import Caller
from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import QuotaExceeded
from fhirpub.storage.quota_contract import QuotaCount
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.web.admission.quota_exchange import QuotaExchange
from fhirpub.web.admission.quotas import Quotas, Ticket

DAY_START = 1_795_000_000_000 // 86_400_000 * 86_400_000
NOW = DAY_START + 10_000
TENANT, OTHER = (Tenant(name, name, b"", 0) for name in ("tenant-1", "tenant-2"))
ONE, TWO, THREE = Caller(TENANT, "client-1"), Caller(TENANT, "client-2"), Caller(OTHER, "client-3")


class WatchedStore(SqliteStore):
    """A store that notes what is asked of it, and fails while it has a problem."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls: list[tuple[str, int]] = []
        self.put: list[Sequence[QuotaCount]] = []
        """The counts that were written."""
        self.problem: Exception | None = None

    def sizes(self, name: str) -> list[int]:
        """Return how many items each call of a kind was for."""
        return [size for called, size in self.calls if called == name]

    def _note(self, name: str, count: int) -> None:
        self.calls.append((name, count))
        if self.problem is not None:
            raise self.problem

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        self._note("put", len(counts))
        self.put.append([*counts])
        await super().put_quota_counts(process, counts)

    async def quota_counts(self, owners: Collection[str], **options: Any) -> Any:
        self._note("read", len(owners))
        return await super().quota_counts(owners, **options)

    async def stored_bytes(self, tenants: Collection[str]) -> Any:
        self._note("stored", len(tenants))
        return await super().stored_bytes(tenants)

    async def quota_overrides(self) -> Any:
        self._note("overrides", 0)
        return await super().quota_overrides()


class Process:
    """The quotas of one process, and their exchange."""

    def __init__(self, store: SqliteStore, clock: HandClock, **limits: int) -> None:
        self.quotas = Quotas(QuotasConfig(**limits), clock)
        self.exchange = QuotaExchange(self.quotas, store, clock=clock)

    def ticket(self, caller: Caller = ONE) -> Ticket:
        ticket = self.quotas.ticket(caller)
        assert ticket is not None
        return ticket

    def enter(self, caller: Caller = ONE) -> Ticket:
        """Return the ticket of a request that has been admitted."""
        ticket = self.ticket(caller)
        ticket.enter()
        return ticket

    def admit(self, count: int, caller: Caller = ONE) -> int:
        """Return how many requests are admitted, each ended before the next."""
        admitted = 0
        for _ in range(count):
            ticket = self.ticket(caller)
            try:
                ticket.enter()
            except QuotaExceeded:
                continue
            admitted += 1
            ticket.leave()
        return admitted
