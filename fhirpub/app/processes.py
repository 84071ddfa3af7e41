"""The processes behind `fhirpub serve` and `fhirpub dispatch`."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fhirpub.app import stores
from fhirpub.app.context import name_plugins_of
from fhirpub.app.plugin_lifetime import plugins_running
from fhirpub.app.secret_checks import follow_keys, report_lost_key
from fhirpub.app.server import run_server
from fhirpub.app.services import build_services, create_sender
from fhirpub.app.stores import OpenStore
from fhirpub.app.tracing import open_tracer
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.loader import port_contradictions
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.fhir.schema import own_schemas
from fhirpub.http.own_ports import reserve_own_port
from fhirpub.http.sockets import bind, reserve
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.descriptors import raise_descriptor_limit
from fhirpub.runtime.logging import configure, logger
from fhirpub.runtime.memory import tune_allocator
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.stop_signals import run_until_stopped
from fhirpub.runtime.supervisor import supervise
from fhirpub.web.metrics_server import bind_page, serve_metrics
from fhirpub.webhooks.dispatch.worker import WebhookWorker

_SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter that another waits for, mostly the event loop. With the
default of 5 ms, a small request during the validation of a large one took 12 ms; now 2 ms."""
_log = logger()


def serve(config: Config, *, announce: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status.

    ``announce`` is called once with the base URL, when requests are accepted.
    Raises ConfigurationError, StoreUnavailable.
    """
    configure(level=config.logs.level, form=config.logs.format)
    problems = port_contradictions(config.server, config.metrics, config.admin, config.console)
    if problems:  # options of the command line override the file that was already checked
        raise ConfigurationError("\n".join(problems))
    if config.server.workers > 1:
        reserved = reserve(config)
        port = reserved.getsockname()[1]
        config = replace(config, server=replace(config.server, port=port))
        console = config.console if config.console.enabled else ConsoleConfig()
        with (
            reserved,
            reserve_own_port("admin", config.admin),
            reserve_own_port("console", console),
        ):
            return _supervise(config, announce)
    run_until_stopped(partial(_serve_one, config, announce))
    return 0


def _supervise(config: Config, announce: Callable[[str], None]) -> int:
    all_started = False

    def work(number: int, ready: Callable[[str], None]) -> None:
        # A replacement must not create an empty store: the file was there, and may come back.
        open_store = partial(stores.open_store, create=not all_started)
        settings = _worker_config(config, number)
        run_until_stopped(
            partial(_serve_one, settings, ready, shares_port=True, open_store=open_store)
        )

    def announce_all() -> None:
        nonlocal all_started
        all_started = True
        announce(config.base_url)

    own_schemas()  # once for all workers, which share its memory, and for those that replace them
    return supervise(config.server.workers, work, announce=announce_all)


def _worker_config(config: Config, number: int) -> Config:
    """Return the configuration of one worker: its metrics are served on a port of its own."""
    port = config.metrics.port and config.metrics.port + number
    return replace(config, metrics=replace(config.metrics, port=port))


async def _serve_one(
    config: Config,
    announce: Callable[[str], None],
    stop: asyncio.Event,
    *,
    shares_port: bool = False,
    open_store: OpenStore = stores.open_store,
) -> None:
    raise_descriptor_limit()
    tune_allocator()
    sys.setswitchinterval(_SWITCH_SECONDS)
    page = bind_page(config.metrics)
    sockets: list[socket.socket] = []
    if not shares_port:
        config, sockets = bind(config)
    async with (
        build_services(config, open_store=open_store) as services,
        serve_metrics(services.metrics, page),
    ):
        if shares_port:  # not earlier: the kernel would route clients here before it can answer
            _config, sockets = bind(config, reuse_port=True)
        async with run_server(services, sockets):
            gc.collect()
            gc.freeze()  # objects built at start live for ever: keep them out of every collection
            announce(config.base_url)
            await stop.wait()
            _log.info("stopping", drain_seconds=config.server.drain_seconds)


def dispatch(config: Config, *, announce: Callable[[], None]) -> int:
    """Relay and send webhooks until SIGTERM or SIGINT, serving no requests.

    ``announce`` is called once started. Returns the exit status.
    Raises ConfigurationError, StoreUnavailable.
    """
    if not config.webhooks.enabled:
        raise ConfigurationError("[webhooks] enabled: must be true for anything to be sent")
    configure(level=config.logs.level, form=config.logs.format)
    run_until_stopped(partial(_dispatch, config, announce))
    return 0


async def _dispatch(config: Config, announce: Callable[[], None], stop: asyncio.Event) -> None:
    page, metrics = bind_page(config.metrics), Metrics(serves=False, sends=True)
    name_plugins_of(config.plugins)
    async with (
        plugins_running(config),
        stores.open_store(config) as store,
        open_tracer(config.tracing, store) as tracer,
        serve_metrics(metrics, page),
        create_sender(config, metrics, now_ms) as sender,
        WebhookWorker(
            store,
            config=config,
            seal=store.cipher,
            metrics=metrics,
            clock=now_ms,
            sender=sender,
            tracer=tracer,
        ).running(),
    ):
        await report_lost_key(store)
        following = asyncio.create_task(follow_keys(store.cipher))
        announce()
        await stop.wait()
        following.cancel()
        _log.info("stopping", drain_seconds=config.server.drain_seconds)
