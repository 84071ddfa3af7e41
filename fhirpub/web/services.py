"""The one object that every handler works with."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fhirpub.audit.trail import AuditTrail
from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import Config
from fhirpub.interactions.context import Context
from fhirpub.plugin_api import ResourceType
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.fair_executor import FairExecutor
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.runtime.loop_lag import LoopLag
from fhirpub.runtime.memory import MemoryTrimmer
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.process_pool import ProcessPool
from fhirpub.runtime.tracing.spans import Tracer
from fhirpub.storage.store import Store
from fhirpub.web.admission.body_timeout import BodyReadTimeout
from fhirpub.web.admission.loop_turns import LoopTurns
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.admission.quota_exchange import QuotaExchange
from fhirpub.web.admission.quotas import Quotas, Ticket
from fhirpub.web.admission.rate_limit import RateLimit
from fhirpub.web.readiness import Readiness
from fhirpub.webhooks.dispatch.thread import WorkerThread
from fhirpub.webhooks.dispatch.worker import WebhookWorker
from fhirpub.webhooks.management.arrivals import Arrivals
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.endpoints import EndpointService

_ENTRIES = 96
"""So many entries of batches are processed at a time."""
_ENTRIES_OF_OWNER = 48
"""So many of one tenant: those that are stored together are also answered together, in one turn of
the event loop."""
_AUDIT_SEARCHES, _AUDIT_OF_OWNER = 4, 2
"""So many searches for audit events read blocks at a time, and of one tenant: each may hold one of
one or two megabytes for each of eight sets of keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that was built at start, typed; made by the composition root."""

    config: Config
    store: Store
    types: Mapping[str, ResourceType]
    tokens: Tokens
    context: Context
    clock: Clock
    rate_limit: RateLimit
    quotas: Quotas
    quota_exchange: QuotaExchange
    metrics: Metrics
    body_timeout: BodyReadTimeout
    request_memory: MemoryBudget
    response_memory: MemoryBudget
    batch_memory: MemoryBudget
    """For the responses to batches, which are complete only when the last entry ends."""
    readiness: Readiness
    endpoints: EndpointService
    deliveries: DeliveryLog
    arrivals: Arrivals
    sending: WebhookWorker | WorkerThread | None
    """What relays and sends webhooks in this process, if it is to."""
    statement: tuple[str, bytes]
    """The CapabilityStatement with its ETag."""
    own_resources: Mapping[tuple[str, str], bytes]
    """What the service itself publishes, by type and id."""
    processes: ProcessPool | None
    """Where dense and very large bodies are computed; None: in threads of this process."""
    tracer: Tracer | None = None
    """What begins spans; None if the service does not trace."""
    audit: AuditTrail | None = None
    """The audit trail; None if there is none."""
    openapi: tuple[str, bytes] = ("", b"")
    """The OpenAPI document with its ETag."""
    ticket_type: type[Ticket] = Ticket
    """How a request counts in the quotas of its caller."""
    threads: FairExecutor = field(default_factory=FairExecutor)
    trimmer: MemoryTrimmer = field(default_factory=MemoryTrimmer)
    loop_turns: LoopTurns = field(default_factory=LoopTurns)
    loop_lag: LoopLag = field(default_factory=LoopLag)
    entry_turns: FairTurns = field(
        default_factory=lambda: FairTurns(max_turns=_ENTRIES, per_owner=_ENTRIES_OF_OWNER)
    )
    """The turns of the entries of batches."""
    audit_turns: FairTurns = field(
        default_factory=lambda: FairTurns(max_turns=_AUDIT_SEARCHES, per_owner=_AUDIT_OF_OWNER)
    )
    """The turns of searches for audit events."""
    in_flight: set[Any] = field(default_factory=set)
    """The handlers that have not answered yet."""
    request_ids: Iterator[str] = field(
        default_factory=lambda: map(f"{secrets.token_hex(6)}-{{:08x}}".format, itertools.count(1))
    )
