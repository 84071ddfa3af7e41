"""The state of one endpoint in the process that sends to it: its queue, limits and health."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import SecretsUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.webhook_contract import Delivery, Endpoint, QueuedDelivery
from fhirpub.webhooks.dispatch.queue import WINDOW, Bucket, Queue
from fhirpub.webhooks.dispatch.send_window import SendWindow
from fhirpub.webhooks.management.secret_encryption import token_of
from fhirpub.webhooks.policy.endpoint_health import NEW_HEALTH, EndpointHealth
from fhirpub.webhooks.policy.retry_policy import FailurePolicy
from fhirpub.webhooks.transport.envelope import trace_of
from fhirpub.webhooks.transport.message import Message

_DOUBTED_MS = 1_000

_log = logger()


@dataclass(frozen=True, slots=True)
class _OpenSecret:
    text: str
    expires: int | None


class EndpointWorker:
    """Decides when the next deliveries of one endpoint may be sent, and with which secrets."""

    most_queued = WINDOW
    """How many deliveries the queue has room for."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        settings: WebhooksConfig,
        patience: FailurePolicy,
        seal: SecretCipher,
    ) -> None:
        self.endpoint = endpoint
        self.queue = Queue(endpoint.ordering)
        self.condition = EndpointHealth.read(endpoint.condition)
        self.saved = self.condition.serialize()
        """The endpoint's health as it is stored."""
        self.read = 0
        """When the whole queue was last loaded, in milliseconds UTC; 0: it must be reloaded."""
        self.behind = False
        """The store has more deliveries than the queue holds."""
        self.reading = False
        """The queue is being loaded."""
        self.leaving = False
        """No more attempts are started: the endpoint moves to another process."""
        self.disabling = False
        """No more attempts are started: the endpoint is being disabled."""
        self.alarm: int | None = None
        """The scheduled wake-up, in milliseconds UTC."""
        self._patience = patience
        self.window = SendWindow(settings.in_flight_per_endpoint)
        self._seal = seal
        self._bucket = Bucket.full(settings.rate_per_endpoint, 0)
        self._secrets: list[_OpenSecret] = []
        self._token = ""
        self._usable = False
        self._open_secrets()

    def update(self, endpoint: Endpoint) -> None:
        """Apply a new revision of the endpoint."""
        before, self.endpoint = self.endpoint, endpoint
        if (before.ordering, before.reopened) != (endpoint.ordering, endpoint.reopened):
            self.read = 0
        begins = endpoint.condition == NEW_HEALTH != before.condition  # as once it was enabled
        if begins or before.url != endpoint.url:  # a new receiver has no history
            self.condition = EndpointHealth()
        if before.revision != endpoint.revision:
            self.disabling = False
            self._open_secrets()

    def reset_health(self) -> None:
        """Reset the failure streak of an inactive endpoint, to which nothing was sent."""
        if self.endpoint.state != "active":
            self.condition = self.condition.with_failures_reset()

    def dequeue(self, now: int, most: int) -> list[QueuedDelivery]:
        """Dequeue the deliveries that may be sent now, at most ``most``."""
        if self._closed or not self.condition.allows(now):
            return []
        most = min(most, self.window.size - self.queue.taken, self._bucket.available(now))
        if self.condition.probes:
            most = min(most, 1)
        taken = self.queue.take(now, max(0, most))
        if taken:
            self._bucket.take(len(taken))
            self.condition = self.condition.probing(now, self._patience)
        return taken

    def waits_for_process(self, now: int) -> int | None:
        """Return since when a delivery waits that could be sent now; None if there is none.

        It waits for this process then, and not for the receiver, its limits or its health.
        """
        if self._closed or self.window.slots.locked() or not self.condition.allows(now):
            return None
        return self.queue.ready_since if self._bucket.available(now) else None

    def requeue_and_reload(self, delivery: Delivery | QueuedDelivery, now: int) -> None:
        """Requeue a delivery that another process has or had, and mark the queue for a reload.

        Until then nothing behind it in its lane is sent.
        """
        self.queue.back(delivery.event_id, due=now + _DOUBTED_MS, number=delivery.number)
        self.read = 0

    def next_moment(self, now: int) -> int | None:
        """Return when the next attempt may start; None: not before a delivery arrives or ends."""
        moment = self.queue.next_moment()
        full = self.queue.taken >= self.window.size
        if moment is None or full or self._closed:
            return None
        moment = max(moment, self.condition.until)
        return moment if self._bucket.available(now) else max(moment, self._bucket.next_moment())

    def message(self, delivery: Delivery, now: int) -> Message:
        """Return the message to send, with the secrets that are valid now."""
        secrets = [
            secret.text
            for secret in self._secrets
            if secret.expires is None or now < secret.expires
        ]
        return Message(
            endpoint=self.endpoint.id,
            tenant=self.endpoint.tenant,
            url=self.endpoint.url,
            token=self._token,
            secrets=tuple(secrets),
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            body=delivery.body,
            number=delivery.number,
            sequence=delivery.sequence,
            traceparent=trace_of(delivery.body),
        )

    @property
    def stale(self) -> bool:
        """Whether the queue must be reloaded."""
        return not self.read

    @property
    def _closed(self) -> bool:
        return self.leaving or self.disabling or not self._usable

    def _open_secrets(self) -> None:
        """Decrypt the signing secrets; without them nothing is sent and no attempt is used up."""
        name = self.endpoint.id
        try:
            self._secrets = [
                _OpenSecret(
                    self._seal.decrypt(secret.sealed, endpoint=name, purpose="secret"),
                    secret.expires,
                )
                for secret in self.endpoint.secrets
            ]
            self._token = token_of(self.endpoint, self._seal)
            self._usable = True
        except SecretsUnavailable as problem:
            self._usable = False
            _log.error("endpoint cannot be sent to", endpoint=name, reason=problem.reason)
