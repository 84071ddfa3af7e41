"""Operational events about a tenant's endpoints, such as one that is failing or was disabled.

Ids are derived from what happened, so that a repeat adds nothing. An endpoint never receives
events about itself, and a failed delivery of such an event raises no other event: that would never
end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.webhooks.management.event_types import EVERYTHING, matches
from fhirpub.webhooks.transport.envelope import WebhookEvent, event_of_endpoint

EXHAUSTED = "message.exhausted"
DISABLED = "endpoint.disabled"
FAILING = "endpoint.failing"

_ALL = frozenset({EXHAUSTED, DISABLED, FAILING})


class ServiceEvents:
    """Makes these events. ``base_url`` is the service's address, without a slash at its end."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def emit_exhausted(self, endpoint: Endpoint, delivery: Delivery, *, now: int) -> WebhookEvent:
        """Emit that a delivery has used up its attempts."""
        more = {
            "event_id": delivery.event_id,
            "event_type": delivery.event_type,
            "sequence": delivery.sequence,
            "attempts": delivery.number,
        }
        what = (delivery.event_id, endpoint.reopened)
        return self._event(EXHAUSTED, endpoint, what, now, more)

    def emit_disabled(self, endpoint: Endpoint, why: str, *, now: int) -> WebhookEvent:
        """Emit that an endpoint is going to be disabled, in its next revision."""
        return self._event(DISABLED, endpoint, (endpoint.revision,), now, {"why": why})

    def failing(self, endpoint: Endpoint, *, since: int, now: int) -> WebhookEvent:
        """Emit that an endpoint has been failing for a long time."""
        return self._event(FAILING, endpoint, (since,), now, {})

    def _event(
        self, name: str, endpoint: Endpoint, what: tuple[Any, ...], now: int, more: dict[str, Any]
    ) -> WebhookEvent:
        words = "|".join(map(str, (name, endpoint.id, *what)))
        digest = hashlib.sha256(words.encode()).hexdigest()[:32]
        return event_of_endpoint(
            name, endpoint.id, name=digest, now=now, base_url=self._base_url, more=more
        )


def is_service_event(event_type: str) -> bool:
    """Return whether an event type is operational, not about a resource."""
    return event_type in _ALL


def subscribers_of(
    endpoint: Endpoint, event_type: str, others: Iterable[Endpoint]
) -> list[Endpoint]:
    """Return the tenant's endpoints that subscribe to this event type by name.

    A pattern for everything does not mean these events: its receiver knows of reports only.
    """
    return [
        other
        for other in others
        if other.tenant == endpoint.tenant
        and other.id != endpoint.id
        and matches([one for one in other.events if one not in (EVERYTHING, "*.*")], event_type)
    ]
