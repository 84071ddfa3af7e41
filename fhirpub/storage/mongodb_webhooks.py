"""The half of the store in MongoDB that keeps webhooks: not made yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.contract import Version
from fhirpub.storage.webhook_contract import (
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryState,
    Dispatching,
    Ended,
    Endpoint,
    Endpoints,
    Waiting,
)


class MongoWebhooks(Endpoints, Dispatching):
    """Stands in until it is there."""

    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        raise NotImplementedError

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        raise NotImplementedError

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        raise NotImplementedError

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        raise NotImplementedError

    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        raise NotImplementedError

    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        raise NotImplementedError

    async def all_endpoints(self) -> Sequence[Endpoint]:
        raise NotImplementedError

    async def put_condition(self, endpoint_id: str, condition: bytes) -> None:
        raise NotImplementedError

    async def copy_endpoint(self, endpoint: Endpoint) -> None:
        raise NotImplementedError

    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        raise NotImplementedError

    async def release(self, names: Collection[str], *, owner: str) -> None:
        raise NotImplementedError

    async def unrelayed(self, *, limit: int) -> Sequence[tuple[str, Version]]:
        raise NotImplementedError

    async def mark_relayed(self, keys: Collection[tuple[str, int]]) -> None:
        raise NotImplementedError

    async def ends(self, endpoints: Collection[str]) -> Mapping[str, int]:
        raise NotImplementedError

    async def append(self, deliveries: Sequence[Delivery]) -> int:
        raise NotImplementedError

    async def told(self, endpoint_id: str, event_ids: Collection[str]) -> frozenset[str]:
        raise NotImplementedError

    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[Waiting]:
        raise NotImplementedError

    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        raise NotImplementedError

    async def finish(self, outcomes: Collection[Ended]) -> None:
        raise NotImplementedError

    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        raise NotImplementedError

    async def walk_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        raise NotImplementedError

    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        raise NotImplementedError
