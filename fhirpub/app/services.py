"""Builds every part of the service from its configuration."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
)
from dataclasses import replace
from functools import partial

from fhirpub.app import compute, stores
from fhirpub.app.administration import create_endpoint_service
from fhirpub.app.context import create_context, ignore_new_events
from fhirpub.app.secret_checks import require_readable_secrets
from fhirpub.app.stores import OpenStore
from fhirpub.app.tracing import open_tracer
from fhirpub.audit.checkpoint import TYPE
from fhirpub.audit.parameters import capability
from fhirpub.audit.recorder import Recorder
from fhirpub.audit.sealer import Sealer
from fhirpub.audit.trail import AuditTrail
from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.statements import sign_statement
from fhirpub.auth.tokens import Tokens
from fhirpub.config.retention import policies_of
from fhirpub.config.settings import Config
from fhirpub.interactions.capabilities import own_resources, statement
from fhirpub.interactions.erasure.retention import check_policies
from fhirpub.plugin_host.issuers import load_issuers
from fhirpub.plugin_host.sinks import load_event_sinks
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.process_pool import ProcessPool
from fhirpub.storage.leases import Leases
from fhirpub.storage.store import Store
from fhirpub.web.admission.body_timeout import BodyReadTimeout
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.admission.quota_exchange import QuotaExchange
from fhirpub.web.admission.quotas import Quotas
from fhirpub.web.admission.rate_limit import RateLimit
from fhirpub.web.openapi.document import openapi
from fhirpub.web.readiness import Readiness
from fhirpub.web.services import Services
from fhirpub.webhooks.dispatch.thread import WorkerThread
from fhirpub.webhooks.dispatch.worker import WebhookWorker
from fhirpub.webhooks.management.arrivals import Arrivals
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.transport.sender import Sender

_LEASE_SECONDS = 15.0
"""So long the sealing of the audit trail waits for a process that has died."""
_BATCHES = 8
"""So many of the largest responses to batches have memory at a time, five of one tenant."""


@asynccontextmanager
async def build_services(
    config: Config, *, clock: Clock = now_ms, open_store: OpenStore = stores.open_store
) -> AsyncGenerator[Services, None]:
    """Build every part of the service until the block ends; nothing listens yet.

    ``open_store`` opens the store to work on, by default the configured one.
    Raises ConfigurationError, PluginError, SecretsUnavailable, StoreUnavailable.
    """
    storeless = create_context(config, clock=clock)
    check_policies(policies_of(config.retention), storeless)
    types = storeless.types
    metrics = Metrics(serves=True, sends=_sends(config))
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(config))
        await require_readable_secrets(store)
        tracer = await stack.enter_async_context(open_tracer(config.tracing, store))
        open_sender = partial(create_sender, config, metrics, clock)
        sender = await stack.enter_async_context(open_sender())
        tokens = await _start_tokens(config, store, sender, clock, stack)
        create_worker = partial(
            WebhookWorker,
            config=config,
            seal=store.cipher,
            metrics=metrics,
            clock=clock,
            tracer=tracer,
        )
        sending = _sending(config, store, sender, open_sender, create_worker)
        context = replace(
            storeless, resources=store, added=sending.ring if sending else ignore_new_events
        )
        capabilities = statement(context, [capability()] if config.audit.enabled else [])
        limits = config.limits
        quotas = Quotas(config.quotas, clock)
        services = Services(
            config=config,
            store=store,
            types=types,
            tokens=tokens,
            context=context,
            clock=clock,
            rate_limit=RateLimit(limits.requests_per_client, clock),
            quotas=quotas,
            quota_exchange=QuotaExchange(quotas, store, clock=clock),
            metrics=metrics,
            body_timeout=BodyReadTimeout(limits.body_seconds),
            request_memory=MemoryBudget(
                limits.large_bodies_bytes,
                patience_seconds=limits.body_seconds,
                largest=limits.request_bytes,
            ),
            response_memory=MemoryBudget(
                limits.large_answers_bytes,
                patience_seconds=limits.body_seconds,
            ),
            batch_memory=MemoryBudget(
                _BATCHES * config.batch.answer_bytes,
                patience_seconds=limits.body_seconds,
            ),
            readiness=Readiness(store.check),
            endpoints=create_endpoint_service(config, store, sender, types, clock),
            deliveries=DeliveryLog(store, clock=clock),
            arrivals=Arrivals(store),
            sending=sending,
            statement=capabilities,
            own_resources=own_resources(context, capabilities[1]),
            processes=_compute_processes(config, stack),
            audit=_create_audit(config, store, tokens, clock),
            tracer=tracer,
        )
        metrics.in_flight.set_function(lambda: len(services.in_flight))
        lag = services.loop_lag
        metrics.loop_lag_p99.set_function(lambda: lag.quantile(0.99))
        metrics.loop_lag_max.set_function(lag.highest)
        yield replace(services, openapi=openapi(services))


def _create_audit(config: Config, store: Store, tokens: Tokens, clock: Clock) -> AuditTrail | None:
    """Create the audit trail of this process, if there is to be one."""
    if not config.audit.enabled:
        return None
    recorder = Recorder(store, deadline_seconds=config.storage.deadline_seconds)
    sealer = Sealer(
        store,
        recorder=recorder,
        leases=Leases(store, owner=secrets.token_hex(8), seconds=_LEASE_SECONDS, clock=clock),
        sign=partial(sign_statement, tokens.ring, type_=TYPE),
        config=config.audit,
        clock=clock,
    )
    return AuditTrail(recorder, sealer, access=store, config=config.audit, clock=clock)


def _compute_processes(config: Config, stack: AsyncExitStack) -> ProcessPool | None:
    """Create the pool of compute processes, stopped when the stack is closed."""
    if not config.limits.compute_processes:
        return None
    processes = ProcessPool(compute.MODULE, config, max_processes=config.limits.compute_processes)
    stack.push_async_callback(processes.close)
    return processes


async def _start_tokens(
    config: Config, store: Store, sender: Sender, clock: Clock, stack: AsyncExitStack
) -> Tokens:
    """Start the token service, stopped when the stack is closed."""
    url = f"{config.base_url}/oauth/token"
    tokens = Tokens(
        access=store,
        config=config.auth,
        limits=config.limits,
        issuer=config.issuer,
        clock=clock,
        endpoint=TokenEndpoint(url, sender.retrieve, load_issuers(config)),
    )
    await tokens.start()
    stack.push_async_callback(tokens.stop)
    return tokens


def _sends(config: Config) -> bool:
    """Return whether the process that serves requests also sends webhooks."""
    return config.webhooks.enabled and config.webhooks.dispatch_in_server


def create_sender(config: Config, metrics: Metrics, clock: Clock) -> Sender:
    """Create what sends: a client that counts blocked addresses, and new sinks of plugins."""
    return Sender(
        config.webhooks,
        clock=clock,
        blocked=metrics.blocked_addresses.inc,
        sinks=load_event_sinks(config),
    )


def _sending(
    config: Config,
    store: Store,
    sender: Sender,
    open_sender: Callable[[], Sender],
    create: Callable[..., WebhookWorker],
) -> WebhookWorker | WorkerThread | None:
    """Return the webhook worker of this process; None if another process sends.

    It runs in a thread, unless the engine cannot be used on two event loops.
    """
    if not _sends(config):
        return None
    own = store.for_other_loop()
    if own is None:
        return create(store, sender=sender)

    @asynccontextmanager
    async def open_worker() -> AsyncGenerator[WebhookWorker]:
        await own.start()
        try:
            async with open_sender() as own_sender:
                yield create(own, sender=own_sender)
        finally:
            await own.stop()

    return WorkerThread(open_worker)
