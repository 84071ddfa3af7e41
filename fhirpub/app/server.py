"""Serves requests until a stop signal, then drains."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)

from fhirpub.app.administration import administering
from fhirpub.app.console import serving_console, table_of
from fhirpub.app.erasures import InterruptedErasures
from fhirpub.app.plugin_lifetime import plugins_running
from fhirpub.app.retention import RetentionRound
from fhirpub.app.secret_checks import follow_keys
from fhirpub.errors import StoreUnavailable
from fhirpub.http.connections import ConnectionLimits
from fhirpub.http.server import Bounds, Server
from fhirpub.interactions.reindex import reindex_if_needed
from fhirpub.runtime.descriptors import usable_connections
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.web.adapter import RequestRouterAdapter
from fhirpub.web.error_mapping import HEAD_BYTES
from fhirpub.web.services import Services

_SWEEP_SECONDS = 600
_HOUR = 3_600_000

_log = logger()


@asynccontextmanager
async def run_server(
    services: Services, sockets: Sequence[socket.socket]
) -> AsyncGenerator[None, None]:
    """Serve until the block ends, then drain requests in flight and stop.

    Raises PluginError for a plugin that cannot be started.
    """
    async with plugins_running(services.config), _serving(services, sockets):
        yield


@asynccontextmanager
async def _serving(
    services: Services, sockets: Sequence[socket.socket]
) -> AsyncGenerator[None, None]:
    config = services.config
    # Not in build_services: `fhirpub check` builds everything while an older release may still
    # write index values in the old form.
    await reindex_if_needed(services.store, services.context.searched)
    await services.quota_exchange.start()
    bounds = Bounds(
        head_bytes=HEAD_BYTES,
        body_bytes=config.limits.drain_bytes,
        idle_seconds=config.limits.idle_seconds,
        head_seconds=config.limits.head_seconds,
        connections=ConnectionLimits(
            total=usable_connections(config.limits.connections),
            per_address=config.limits.connections_per_address,
            proxies=config.server.trusted_proxies,
        ),
    )
    server = Server(RequestRouterAdapter(services, table_of(services)), bounds)
    server.add_sockets(list(sockets))
    background = [
        asyncio.create_task(work)
        for work in (
            _sweep(services),
            services.body_timeout.run(),
            services.trimmer.run(),
            services.quota_exchange.run(),
            services.loop_lag.run(services.metrics.loop_lag.observe),
            follow_keys(services.store.cipher),
            InterruptedErasures(services).run(),
            RetentionRound(services).run(),
        )
    ]
    async with AsyncExitStack() as auditing, AsyncExitStack() as sending:
        if services.audit:
            await auditing.enter_async_context(services.audit.running())
        if services.sending:
            await sending.enter_async_context(services.sending.running())
        try:
            async with administering(services), serving_console(services, bounds):
                yield
        finally:
            server.stop()
            services.arrivals.stop()
            await asyncio.gather(_drain(services, server), sending.aclose())
            await server.close_all_connections()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await services.quota_exchange.finish()
            services.threads.close()


async def _drain(services: Services, server: Server) -> None:
    """Wait, at most ``drain_seconds``, until no request is in flight and no client connected."""
    with suppress(TimeoutError):
        async with asyncio.timeout(services.config.server.drain_seconds):
            while services.in_flight or server.close_idle():
                await asyncio.sleep(0.02)


async def _sweep(services: Services) -> None:
    """Delete what is an hour old, every ten minutes: loose documents, counts, expired tokens.

    A registration stores its documents first; one that is interrupted leaves them behind.
    """
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        try:
            await _sweep_store(services)
        except StoreUnavailable as problem:
            _log.warning("not swept", reason=problem.reason)
        except Exception as problem:  # noqa: BLE001 - the next round may succeed
            _log.error("not swept", **where(problem))


async def _sweep_store(services: Services) -> None:
    for tenant in await services.store.tenants():
        before = services.clock() - _HOUR
        swept = await services.store.sweep_blobs(tenant.id, before=before)
        if swept:
            _log.info("swept", documents=swept, tenant=tenant.id)
    await services.store.sweep_quota_counts(before=services.clock() - _HOUR)
    await services.store.sweep_revoked_tokens(before=services.clock() - _HOUR)
    await services.store.sweep_used_assertions(before=services.clock() - _HOUR)
