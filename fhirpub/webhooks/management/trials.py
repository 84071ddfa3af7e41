"""Events that are sent to an endpoint once, at once: tests and challenges."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import BrokenRule, Throttled
from fhirpub.problems import OperationProblem
from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management.disclosure import disclose
from fhirpub.webhooks.management.endpoint_states import is_verified
from fhirpub.webhooks.management.event_types import TEST, VERIFICATION
from fhirpub.webhooks.management.samples import Samples
from fhirpub.webhooks.management.secret_encryption import live_secrets, token_of
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.envelope import WebhookEvent
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.response import as_kept
from fhirpub.webhooks.transport.sender import Sender

_MAX_TRIALS = 4
_MARGIN_SECONDS = 0.1
"""How much longer than its timeout an attempt may take, until its connection is closed."""


@dataclass(frozen=True, slots=True)
class TestDelivery:
    """One event that was sent at once, and what came of it.

    ``replaces_test``: it is the challenge, although a test was asked for.
    """

    endpoint: Endpoint
    event_id: str
    event_type: str
    outcome: Outcome
    passed: bool
    replaces_test: bool = False


class Trials:
    """Sends tests and challenges, at most four at a time for one tenant (`admit`).

    What only the operator may know of a failure is left out, also how long it took: the call then
    lasts as long as a timeout. For the ``operator`` nothing is left out.
    """

    def __init__(
        self,
        *,
        sender: Sender,
        seal: SecretCipher,
        samples: Samples,
        config: Config,
        clock: Clock,
    ) -> None:
        self._sender = sender
        self._samples = samples
        self._seal = seal
        self._timeout_seconds = config.webhooks.timeout_seconds
        self._clock = clock
        self._running: Counter[str] = Counter()

    @contextmanager
    def admit(self, tenant: str) -> Iterator[None]:
        """Count a trial of a tenant while it lasts. Raises Throttled when it is one too many."""
        if self._running[tenant] >= _MAX_TRIALS:
            raise Throttled(retry_after=round(self._timeout_seconds))
        self._running[tenant] += 1
        try:
            yield
        finally:
            self._running -= Counter([tenant])

    async def send_test(
        self, endpoint: Endpoint, event_type: str, *, operator: bool
    ) -> TestDelivery:
        """Send a sample of an event, which every 2xx response accepts."""
        event = self._samples.of(event_type, endpoint_id=endpoint.id)
        return await self._try(endpoint, event, "", operator=operator)

    async def require_success(self, endpoint: Endpoint, *, operator: bool) -> None:
        """Send a test to a disabled endpoint; raise BrokenRule unless it is delivered."""
        trial = await self.send_test(endpoint, TEST, operator=operator)
        if not trial.passed:
            what = trial.outcome.reason or f"status {trial.outcome.status}"
            said = f"the endpoint did not take a test event ({what}): it stays disabled"
            raise BrokenRule.because(said, details=OperationProblem.ENDPOINT_TEST_FAILED)

    async def send_challenge(self, endpoint: Endpoint, *, operator: bool) -> TestDelivery:
        """Send a challenge, which a 2xx response accepts that repeats it."""
        event = self._samples.of(VERIFICATION, endpoint_id=endpoint.id)
        return await self._try(endpoint, event, event.ids["challenge"], operator=operator)

    async def _try(
        self, endpoint: Endpoint, event: WebhookEvent, challenge: str, *, operator: bool
    ) -> TestDelivery:
        token = token_of(endpoint, self._seal)
        message = self._message(endpoint, event, token)
        repeated = as_kept(challenge.encode(), token)
        end = asyncio.get_running_loop().time() + self._timeout_seconds + _MARGIN_SECONDS
        outcome = await self._sender.attempt(message)
        passed = outcome.delivered and repeated in outcome.answer
        trial = TestDelivery(endpoint, event.id, event.type, outcome, passed)
        return trial if operator else await self._disclose(trial, end)

    async def _disclose(self, trial: TestDelivery, end: float) -> TestDelivery:
        """Return what the tenant may see; if that is not all, only when the time is over."""
        endpoint, outcome = trial.endpoint, trial.outcome
        shown = disclose(
            outcome,
            endpoint=endpoint.id,
            event_id=trial.event_id,
            verified=trial.passed or is_verified(endpoint),
            milliseconds=round(self._timeout_seconds * 1000),
        )
        if shown is not outcome:
            await asyncio.sleep(end - asyncio.get_running_loop().time())
        return replace(trial, outcome=shown)

    def _message(self, endpoint: Endpoint, event: WebhookEvent, token: str) -> Message:
        return Message(
            tenant=endpoint.tenant,
            url=endpoint.url,
            token=token,
            secrets=live_secrets(endpoint, self._seal, now=self._clock()),
            event_id=event.id,
            event_type=event.type,
            body=event.body(sequence=0),
            number=1,
            sequence=0,
        )
