"""Tenants whose resources are erased, on a store in a file, and a trail that is noted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from fhirpub.app.retention import RetentionRound
from fhirpub.config.retention import RetentionConfig
from fhirpub.config.settings import Config
from fhirpub.storage.erasure.contract import Hold
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from tests.unit.interactions.erasure.registered import NOW, TENANT, context_of

POLICY = "DiagnosticReport after 10 days"


class Trail:
    """Notes what is recorded, by tenant."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []

    async def write(self, tenant: str, encode: Any) -> None:
        self.lines.append((tenant, encode(5)))


@dataclass
class Lab:
    """A store with tenants, and services on it whose clock is moved."""

    store: SqliteStore
    trail: Trail
    now: int = NOW

    def time(self) -> int:
        return self.now

    def services(self, **retention: Any) -> Any:
        usual = RetentionConfig(policies=[POLICY], erase=True, erasures_per_minute=1_000_000)
        config = replace(Config(), retention=replace(usual, **retention))
        return SimpleNamespace(
            config=config,
            store=self.store,
            context=replace(context_of(self.store), clock=self.time),
            clock=self.time,
            audit=self.trail,
        )

    async def hold(self, type_name: str, id_: str) -> None:
        """Place a legal hold on a resource of the first tenant."""
        await self.store.put_hold(
            Hold(
                tenant=TENANT.id,
                type=type_name,
                id=id_,
                since=NOW,
                operator="ana",
                reason="lawsuit",
            )
        )

    async def round(self, **retention: Any) -> dict[str, int]:
        made = RetentionRound(self.services(**retention))
        await made._leads()
        return dict(await made.make())

    async def is_there(self, id_: str, tenant: Tenant = TENANT) -> bool:
        latest = await self.store.latest(tenant.id, id_)
        return latest is not None and not is_erased(latest)
