"""The promises of a store about quotas: limits, what was used of them, and stored bytes.

An owner is a tenant or a client, by its id. A quota is a name of `fhirpub.config.quotas`, such as
``tenant_bytes_per_day``; a store does not interpret it. All times are milliseconds since
1970-01-01 UTC, by the clocks of the callers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class QuotaOverride:
    """A limit that an operator set for one tenant or client.

    Attributes:
        owner: The id of the tenant or client.
        quota: The name of the quota.
        limit: The limit, which replaces that of the settings; 0 means no limit. None removes the
            override when it is put, and is never returned.
    """

    owner: str
    quota: str
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaCount:
    """What one process counted of one quota of one owner.

    Attributes:
        owner: The id of the tenant or client.
        quota: The name of the quota.
        period: When the minute or the day began, in milliseconds; 0 if there is no period.
        until: The time in milliseconds from which the count is no longer returned.
        used: How much was counted.
    """

    owner: str
    quota: str
    period: int
    until: int
    used: int


class QuotaUse(NamedTuple):
    """Identifies what was used of a quota in one period: see `QuotaCount`."""

    owner: str
    quota: str
    period: int


class QuotaStore(ABC):
    """Limits of tenants and clients, and their use. Every method may raise StoreUnavailable."""

    @abstractmethod
    async def put_quota_overrides(self, overrides: Collection[QuotaOverride]) -> None:
        """Add overrides, replace those of the same owner and quota, or remove them.

        Overrides of other owners or quotas are not changed, also not by concurrent calls.
        """

    @abstractmethod
    async def quota_overrides(self) -> Sequence[QuotaOverride]:
        """Return all overrides.

        Returns:
            The overrides, ordered by owner and quota.
        """

    @abstractmethod
    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        """Store what one process has counted, over what it stored before.

        A process stores its own total of a period, never an increment, so that a call is safe to
        repeat. Durability is not promised: the counts of the last second may be lost in a crash.

        Args:
            process: An id that no other process has or had.
            counts: The counts, at most one of each owner and quota. Others stay as they are.
        """

    @abstractmethod
    async def quota_counts(
        self, owners: Collection[str], *, now: int, besides: str = ""
    ) -> Mapping[QuotaUse, int]:
        """Return what was used, as the sum over processes.

        Args:
            owners: The ids of the tenants and clients.
            now: Counts are left out unless their ``until`` is later, in milliseconds.
            besides: The id of a process whose counts are left out; empty for none.

        Returns:
            The sums by owner, quota and period; those without a count are omitted.
        """

    @abstractmethod
    async def sweep_quota_counts(self, *, before: int) -> int:
        """Delete counts whose ``until`` is earlier.

        Args:
            before: The time in milliseconds.

        Returns:
            The number of counts deleted.
        """

    @abstractmethod
    async def stored_bytes(self, tenants: Collection[str]) -> Mapping[str, int]:
        """Return what the versions and documents of tenants take.

        These are the bytes of the contents: `Version.size` of each version, and the size of each
        document, which counts once however often the tenant sent it. A document that no version
        refers to counts until it is swept. Indexes and compression are not considered.

        What another process added may be missing for two seconds, and is lost if that process is
        killed in this time.

        Args:
            tenants: The ids of the tenants.

        Returns:
            The bytes by tenant; tenants without any are omitted.
        """
