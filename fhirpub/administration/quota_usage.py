"""What tenants and clients may use, and what they have used so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fhirpub.auth.tenants import require_tenant
from fhirpub.config.quotas import QuotasConfig
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.quota_contract import QuotaOverride, QuotaUse
from fhirpub.storage.store import Store
from fhirpub.web.admission.quota_policy import (
    PERIODS,
    Kind,
    limits_of,
    period_start,
    quota_names,
)

STORED_BYTES = "stored_bytes"


@dataclass(frozen=True, slots=True)
class QuotaState:
    """One limit of one tenant or client; ``used`` is None where nothing is counted."""

    limit_name: str
    limit: int
    is_override: bool
    used: int | None


class Owner(NamedTuple):
    """A tenant or client that has limits."""

    kind: Kind
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class OwnerState:
    """A tenant or client with all of its limits."""

    kind: Kind
    id: str
    name: str
    quotas: Sequence[QuotaState]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The limits and counts in a store at one moment."""

    now: int
    overrides: Mapping[tuple[str, str], int]
    uses: Mapping[QuotaUse, int]
    stored: Mapping[str, int]

    def of(self, one: Owner, config: QuotasConfig) -> OwnerState:
        """Return the state of one tenant or client."""
        kind, owner = one.kind, one.id
        limits = limits_of(kind, owner, config, self.overrides)
        quotas = [
            QuotaState(
                limit_name=limit,
                limit=getattr(limits, limit),
                is_override=(owner, quota) in self.overrides,
                used=self._used(owner, limit, quota) if self._is_counted(limit, limits) else None,
            )
            for limit, quota in quota_names(kind).items()
        ]
        return OwnerState(kind, owner, one.name, quotas)

    def _is_counted(self, limit: str, limits: object) -> bool:
        return limit == STORED_BYTES or bool(getattr(limits, limit))

    def _used(self, owner: str, limit: str, quota: str) -> int:
        if limit == STORED_BYTES:
            return self.stored.get(owner, 0)
        length = PERIODS.get(limit, 0)
        begun = period_start(self.now, length) if length else 0
        return self.uses.get(QuotaUse(owner, quota, begun), 0)


async def states_of_tenant(
    store: Store, tenant_id: str, config: QuotasConfig, *, now: int
) -> list[OwnerState]:
    """Return the state of a tenant, then of each of its clients. Raises NoSuchRecord."""
    tenant = await require_tenant(store, tenant_id)
    clients = await store.clients(tenant=tenant_id)
    owners = [Owner("tenant", tenant.id, tenant.name)]
    owners += [Owner("client", client.id, client.name) for client in clients]
    return await states_of(store, owners, config, now=now)


async def states_of(
    store: Store, owners: Sequence[Owner], config: QuotasConfig, *, now: int
) -> list[OwnerState]:
    """Return the state of each owner."""
    snapshot = Snapshot(
        now=now,
        overrides=_by_owner(await store.quota_overrides()),
        uses=await store.quota_counts([one.id for one in owners], now=now),
        stored=await store.stored_bytes([one.id for one in owners if one.kind == "tenant"]),
    )
    return await in_turns(lambda one: snapshot.of(one, config), owners)


def _by_owner(overrides: Sequence[QuotaOverride]) -> dict[tuple[str, str], int]:
    return {(item.owner, item.quota): item.limit for item in overrides if item.limit is not None}
