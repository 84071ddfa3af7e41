"""Starts and stops what plugins run beside the service."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fhirpub.config.settings import Config
from fhirpub.errors import PluginError
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import plugin_context
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger

_SHUTDOWN_SECONDS = 10.0

_log = logger()


@asynccontextmanager
async def plugins_running(config: Config) -> AsyncGenerator[None, None]:
    """Call ``fhirpub_startup`` of all enabled plugins, and ``fhirpub_shutdown`` in the end.

    Raises PluginError with what prevents the start. What was started is stopped then, too.
    """
    try:
        problems = await _call("fhirpub_startup", config, config.plugins.enabled)
        if problems:
            raise PluginError("\n".join(problems))
        yield
    finally:
        await _stop(config)


async def _stop(config: Config) -> None:
    """Stop in the reverse order; a plugin that fails or hangs does not keep the others."""
    try:
        async with asyncio.timeout(_SHUTDOWN_SECONDS):
            names = [*reversed(config.plugins.enabled)]
            for problem in await _call("fhirpub_shutdown", config, names):
                _log.error("plugin not stopped", problem=problem)
    except TimeoutError:
        _log.error("plugins not stopped", seconds=_SHUTDOWN_SECONDS)


async def _call(hook: str, config: Config, names: Sequence[str]) -> list[str]:
    """Call a hook in a thread, since it may block; return a sentence for each failure."""
    hooks = PluginHooks(names)
    if not hooks.owners_of(hook):
        return []
    context = plugin_context(config, hooks)
    results = await asyncio.to_thread(hooks.call, hook, context=context)
    problems = [problem for found in hooks.problems.values() for problem in found]
    for plugin, result in results:
        if inspect.isawaitable(result):
            try:
                await result
            except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
                _log.error("hook failed", hook=hook, **where(problem))
                said = f"{hooks.sources[plugin].where}: {hook} failed: {type(problem).__name__}"
                problems.append(said)
    return problems
