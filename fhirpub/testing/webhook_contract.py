"""The promises of a store about webhooks as tests; part of `StoreContract`."""

from __future__ import annotations

from fhirpub.testing.contracts.webhooks.attempts import AttemptContract
from fhirpub.testing.contracts.webhooks.delivery_log import DeliveryLogContract
from fhirpub.testing.contracts.webhooks.endpoints import EndpointContract
from fhirpub.testing.contracts.webhooks.leases import LeaseContract
from fhirpub.testing.contracts.webhooks.outbox import OutboxContract
from fhirpub.testing.contracts.webhooks.queues import QueueContract
from fhirpub.testing.contracts.webhooks.records import (
    EVENTS,
    NOW,
    UNTIL,
    a_delivery,
    a_full_delivery,
    a_full_endpoint,
    an_attempt,
    an_endpoint,
    begin,
    end,
    events_added,
    pending_keys,
    queue,
    sequences,
    stored_deliveries,
)
from fhirpub.testing.contracts.webhooks.replay import ReplayContract
from fhirpub.testing.contracts.webhooks.sweeping import SweepContract
from fhirpub.testing.contracts.webhooks.transfer import TransferContract

__all__ = [
    "EVENTS",
    "NOW",
    "UNTIL",
    "WebhookContract",
    "a_delivery",
    "a_full_delivery",
    "a_full_endpoint",
    "an_attempt",
    "an_endpoint",
    "begin",
    "end",
    "events_added",
    "pending_keys",
    "queue",
    "sequences",
    "stored_deliveries",
]


class WebhookContract(
    EndpointContract,
    QueueContract,
    AttemptContract,
    ReplayContract,
    DeliveryLogContract,
    LeaseContract,
    OutboxContract,
    SweepContract,
    TransferContract,
):
    """A test for every promise of `fhirpub.storage.webhook_contract`.

    It uses the fixtures of `StoreContract`, including ``reader``.
    """
