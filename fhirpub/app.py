"""The composition root: builds everything, serves, and stops in the reverse order."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import zoneinfo
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import Config, metrics_contradictions
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.fhir.terminology import Terminology
from fhirpub.http.server import Bounds, Server
from fhirpub.http.sockets import bind, reserve
from fhirpub.interactions.capabilities import own_resources, statement
from fhirpub.interactions.context import Context, fhir_url
from fhirpub.interactions.parameters import Searched
from fhirpub.interactions.reindex import take_anew_if_needed
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_host.loader import load, load_with_owners
from fhirpub.plugin_host.schemas import compiled
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.runtime.logging import configure, logger, where
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.supervisor import supervise
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.sqlite import store as sqlite
from fhirpub.storage.store import Store
from fhirpub.web.adapter import HEAD_BYTES, Front
from fhirpub.web.admission.body_timeout import BodyWatch
from fhirpub.web.admission.memory_budget import Room
from fhirpub.web.admission.rate_limit import RateLimit
from fhirpub.web.metrics_server import bind_page, published
from fhirpub.web.openapi.document import openapi
from fhirpub.web.readiness import Readiness
from fhirpub.web.services import Services
from fhirpub.webhooks.dispatch.worker import Sending
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.endpoints import Administration
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.management.secret_encryption import (
    LOST_KEY,
    Seal,
    configured_seal,
    made_seal,
)
from fhirpub.webhooks.transport.http_client import Sender

_SWEEP_SECONDS = 600
_SHARE_OF_ANSWERS = 0.5
"""A tenant whose clients take large answers slowly leaves room for those of others."""
_HOUR = 3_600_000

_log = logger()


@dataclass(frozen=True, slots=True)
class Administering:
    """What looks after endpoints, and the store in which they are."""

    store: Store
    endpoints: Administration
    deliveries: DeliveryLog


OpenStore = Callable[[Config], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def opened_store(config: Config, *, make: bool = True) -> AsyncGenerator[Store, None]:
    """Open the store of the configuration until the block ends; ``make`` a file if there is none.

    Raises ConfigurationError, StoreUnavailable.
    """
    url, seconds = config.storage.url, config.storage.deadline_seconds
    store: Store
    if url.startswith(mongodb.SCHEMES):
        production = config.auth.environment == "production"
        store = mongodb.from_url(url, deadline_seconds=seconds, production=production)
    else:
        store = sqlite.from_url(url, deadline_seconds=seconds, make=make)
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


@asynccontextmanager
async def opened(
    config: Config, *, clock: Clock = now_ms, open_store: OpenStore = opened_store
) -> AsyncGenerator[Services, None]:
    """Build every part of the service until the block ends; nothing listens yet.

    ``open_store`` opens the store that it works on, by itself that of the configuration.
    Raises ConfigurationError, PluginError, StoreUnavailable.
    """
    plugins = load_with_owners(config.plugins.enabled)
    types = dict(plugins.types)
    schemas = compiled(types, plugins.owners)
    for each in types.values():
        if config.of_type(each.name).state_flow == "clinical" and not each.state_flow:
            raise ConfigurationError(f"[{each.name.lower()}] state_flow: the type declares none")
    directories = [Path(each) for each in config.terminology.value_set_directories]
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(config))
        tokens = Tokens(
            access=store,
            config=config.auth,
            limits=config.limits,
            issuer=config.issuer,
            clock=clock,
        )
        await tokens.start()
        stack.push_async_callback(tokens.stop)
        zone = _zone(config.fhir.default_timezone)
        terminology = Terminology.load(directories)
        searched = {
            name: Searched(
                each,
                schemas=schemas,
                terminology=terminology,
                fhir_url=fhir_url(config),
                zone=zone,
            )
            for name, each in types.items()
        }
        metrics = Metrics(serves=True, sends=_sends(config))
        sender = await stack.enter_async_context(_sender(config, metrics, clock))
        seal = await opened_seal(config, store)
        sending = _sending(config, store, seal, sender, metrics, clock)
        context = Context(
            added=sending.ring if sending else _nobody,
            config=config,
            resources=store,
            types=types,
            searched=searched,
            schemas=schemas,
            terminology=terminology,
            clock=clock,
            default_zone=zone,
        )
        said = statement(context)
        services = Services(
            config=config,
            store=store,
            types=types,
            tokens=tokens,
            context=context,
            clock=clock,
            rate_limit=RateLimit(config.limits.requests_per_client, clock),
            metrics=metrics,
            bodies=BodyWatch(config.limits.body_seconds),
            body_room=Room(
                config.limits.large_bodies_bytes, patience_seconds=config.limits.body_seconds
            ),
            answer_room=Room(
                config.limits.large_answers_bytes,
                patience_seconds=config.limits.body_seconds,
                share=_SHARE_OF_ANSWERS,
            ),
            readiness=Readiness(store.check),
            endpoints=_administration(config, store, seal, sender, types, clock),
            deliveries=DeliveryLog(store, clock=clock),
            sending=sending,
            statement=said,
            own_resources=own_resources(context, said[1]),
        )
        metrics.under_way.set_function(lambda: len(services.under_way))
        yield replace(services, openapi=openapi(services))


def _sends(config: Config) -> bool:
    """Tell whether a process that serves relays and sends as well."""
    return config.webhooks.enabled and config.webhooks.dispatch_in_server


def _sender(config: Config, metrics: Metrics, clock: Clock) -> Sender:
    return Sender(config.webhooks, clock=clock, blocked=metrics.blocked_addresses.inc)


def _sending(
    config: Config, store: Store, seal: Seal, sender: Sender, metrics: Metrics, clock: Clock
) -> Sending | None:
    """Return what relays and sends in this process, if it is to."""
    if not _sends(config):
        return None
    return Sending(store, config=config, seal=seal, metrics=metrics, clock=clock, sender=sender)


def _administration(
    config: Config,
    store: Store,
    seal: Seal,
    sender: Sender,
    types: Mapping[str, ResourceType],
    clock: Clock,
) -> Administration:
    return Administration(
        store=store,
        sender=sender,
        seal=seal,
        event_types=EventTypes.of(types.values()),
        config=config,
        clock=clock,
    )


def _nobody() -> None:
    """Tell nobody: another process sends, and looks for itself."""


async def opened_seal(config: Config, store: Store) -> Seal:
    """Return what encrypts the secrets of endpoints.

    Beside an embedded store its key is made, unless there are secrets of which it is not the one.
    Raises ConfigurationError, StoreUnavailable.
    """
    beside = key_file(config)
    seal = configured_seal(config.webhooks, beside=beside)
    if seal:
        return seal
    if await store.all_endpoints():
        _log.error("no webhook can be signed", reason=LOST_KEY)
        return seal
    return seal if beside is None else made_seal(beside)


def key_file(config: Config) -> Path | None:
    """Return where the key of an embedded store is kept; None for any other, and for no file."""
    url = config.storage.url
    if url.startswith(mongodb.SCHEMES):
        return None
    file = Path(url.removeprefix(sqlite.SCHEME))
    return file.with_suffix(".webhook-keys") if file.name else None


@asynccontextmanager
async def administering(config: Config) -> AsyncGenerator[Administering, None]:
    """Open what it takes to look after endpoints, by command, until the block ends."""
    types = load(config.plugins.enabled)
    async with opened_store(config) as store, Sender(config.webhooks, clock=now_ms) as sender:
        yield Administering(
            store=store,
            endpoints=_administration(
                config, store, await opened_seal(config, store), sender, types, now_ms
            ),
            deliveries=DeliveryLog(store, clock=now_ms),
        )


@asynccontextmanager
async def serving(
    services: Services, sockets: Sequence[socket.socket]
) -> AsyncGenerator[None, None]:
    """Serve until the block ends, then finish what is under way and stop."""
    config = services.config
    # Not earlier: `fhirpub check` builds everything too, beside a service that adds as before.
    await take_anew_if_needed(services.store, services.context.searched)
    bounds = Bounds(
        head_bytes=HEAD_BYTES,
        body_bytes=config.limits.drain_bytes,
        idle_seconds=config.limits.idle_seconds,
    )
    server = Server(Front(services), bounds)
    server.add_sockets(list(sockets))
    beside = [asyncio.create_task(work) for work in (_sweep(services), services.bodies.run())]
    async with AsyncExitStack() as sending:
        if services.sending:
            await sending.enter_async_context(services.sending.running())
        try:
            yield
        finally:
            server.stop()
            await asyncio.gather(_drained(services, server), sending.aclose())
            await server.close_all_connections()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


def serve(config: Config, *, announce: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status.

    ``announce`` is called once, with the base address, when requests are answered.
    Raises ConfigurationError, StoreUnavailable.
    """
    configure(level=config.logs.level, form=config.logs.format)
    problems = metrics_contradictions(config.metrics, config.server)
    if problems:  # the command line may have named other ports and workers than the file
        raise ConfigurationError("\n".join(problems))
    if config.server.workers > 1:
        reserved = reserve(config)
        port = reserved.getsockname()[1]
        config = replace(config, server=replace(config.server, port=port))
        with reserved:
            return _supervise(config, announce)
    asyncio.run(_serve_one(config, announce))
    return 0


def _supervise(config: Config, announce: Callable[[str], None]) -> int:
    all_started = False

    def work(number: int, ready: Callable[[str], None]) -> None:
        # Who replaces another makes no store: what is missing then was there, and will come back.
        open_store = partial(opened_store, make=not all_started)
        settings = _of_worker(config, number)
        asyncio.run(_serve_one(settings, ready, shares_port=True, open_store=open_store))

    def announce_all() -> None:
        nonlocal all_started
        all_started = True
        announce(config.base_url)

    return supervise(config.server.workers, work, announce=announce_all)


def _of_worker(config: Config, number: int) -> Config:
    """Return the settings of one worker: its metrics have a port of their own."""
    port = config.metrics.port and config.metrics.port + number
    return replace(config, metrics=replace(config.metrics, port=port))


def dispatch(config: Config, *, announce: Callable[[], None]) -> int:
    """Relay and send webhooks, and nothing else, until SIGTERM or SIGINT; return the exit status.

    ``announce`` is called once, when it works. Raises ConfigurationError, StoreUnavailable.
    """
    if not config.webhooks.enabled:
        raise ConfigurationError("[webhooks] enabled: must be true for anything to be sent")
    configure(level=config.logs.level, form=config.logs.format)
    asyncio.run(_dispatch(config, announce))
    return 0


async def _dispatch(config: Config, announce: Callable[[], None]) -> None:
    told = told_to_stop()
    page, metrics = bind_page(config.metrics), Metrics(serves=False, sends=True)
    async with (
        opened_store(config) as store,
        published(metrics, page),
        _sender(config, metrics, now_ms) as sender,
        Sending(
            store,
            config=config,
            seal=await opened_seal(config, store),
            metrics=metrics,
            clock=now_ms,
            sender=sender,
        ).running(),
    ):
        announce()
        await told.wait()
        _log.info("stopping", drain_seconds=config.server.drain_seconds)


def told_to_stop() -> asyncio.Event:
    """Return what is set by SIGTERM or SIGINT."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    return told


async def _serve_one(
    config: Config,
    announce: Callable[[str], None],
    *,
    shares_port: bool = False,
    open_store: OpenStore = opened_store,
) -> None:
    page = bind_page(config.metrics)
    sockets: list[socket.socket] = []
    if not shares_port:
        config, sockets = bind(config)
    told = told_to_stop()
    async with (
        opened(config, open_store=open_store) as services,
        published(services.metrics, page),
    ):
        if shares_port:  # before, clients would have come here who find the others ready
            _config, sockets = bind(config, reuse_port=True)
        async with serving(services, sockets):
            gc.collect()
            gc.freeze()  # what was built at start stays: the collector need not look at it again
            announce(config.base_url)
            await told.wait()
            _log.info("stopping", drain_seconds=config.server.drain_seconds)


async def _drained(services: Services, server: Server) -> None:
    """Wait until no request is under way, within limits, and nobody is connected any more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(services.config.server.drain_seconds):
            while services.under_way or server.close_idle():
                await asyncio.sleep(0.02)


async def _sweep(services: Services) -> None:
    """Delete documents that no version came to name, from time to time."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        try:
            for tenant in await services.store.tenants():
                before = services.clock() - _HOUR
                swept = await services.store.sweep_blobs(tenant.id, before=before)
                if swept:
                    _log.info("swept", documents=swept, tenant=tenant.id)
        except StoreUnavailable as problem:
            _log.warning("not swept", reason=problem.reason)
        except Exception as problem:  # noqa: BLE001 - the next time may be better
            _log.error("not swept", **where(problem))


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"[fhir] default_timezone: there is no zone {name}; an example is America/Lima"
        ) from None
