"""The promises of a store about a tenant's webhook endpoints (see `webhook_contract.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.webhook_records import Delivery, DeliveryQuery, DeliveryState, Endpoint


class Endpoints(ABC):
    """The endpoints of a tenant, and the log of their deliveries.

    Every method may raise StoreUnavailable. Data of another tenant cannot be distinguished from
    data that does not exist.
    """

    @abstractmethod
    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        """Add an endpoint of revision 1, or replace the one whose revision is one lower.

        Its ``condition`` and ``reopened`` stay as they are stored.

        Returns:
            Whether the endpoint was stored. False means that nothing was changed, because the
            stored endpoint has another revision, does not exist, or belongs to another tenant. Of
            concurrent calls for one revision one returns True. After StoreUnavailable read the
            endpoint: a repeat returns False although the first call succeeded.
        """

    @abstractmethod
    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        """Return an endpoint.

        Returns:
            The endpoint, deleted or not, or None if this tenant has no such endpoint.
        """

    @abstractmethod
    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        """Return all endpoints of a tenant.

        Returns:
            The endpoints, oldest first, including deleted ones.
        """

    @abstractmethod
    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        """Return deliveries of one endpoint, each with its attempts.

        Args:
            tenant: The tenant of the endpoint.
            query: The endpoint, and which of its deliveries to return.

        Returns:
            The deliveries in the order of the sequence, or reversed with ``newest_first``.
        """

    @abstractmethod
    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        """Count the deliveries of an endpoint by state.

        Returns:
            The number of deliveries in each state; states without deliveries are omitted.
        """

    @abstractmethod
    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        """Reopen ended deliveries, so that they are sent again.

        An ended delivery keeps its position in the sequence and its log. It becomes pending with
        ``number`` 0, so that it gets all attempts again, and is due at ``now``. An open delivery
        that waits for a later attempt becomes due at ``now``, too. Deliveries that are due
        already, or are being sent, are not changed.

        After that, ``reopened`` of the endpoint grows. It may grow even if no delivery was
        changed, so that repeating an interrupted call also announces what that call reopened.

        Args:
            tenant: The tenant of the endpoint.
            endpoint_id: The id of the endpoint.
            event_ids: The ids of the events whose deliveries are reopened. Unknown ones are
                ignored.
            now: The current time, in milliseconds.

        Returns:
            The number of deliveries that were reopened or became due.
        """
