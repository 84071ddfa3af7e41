"""Starts and stops what plugins run beside the service."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fhirpub.config.settings import Config
from fhirpub.errors import PluginError
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import plugin_context
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger

_SHUTDOWN, _SHUTDOWN_SECONDS = "fhirpub_shutdown", 10.0
_LEAST_SECONDS = 0.01
"""A thread has these to begin, also if no time is left."""

T = TypeVar("T")

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
    stopping = _Stopping(config)
    names: Sequence[str] = [*reversed(config.plugins.enabled)]
    while names:
        names = await stopping.call(names)
    await stopping.finish()


class _Stopping:
    """Calls ``fhirpub_shutdown``, within ten seconds.

    A plugin that has taken half of the time that is left goes on beside those behind it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._until = asyncio.get_running_loop().time() + _SHUTDOWN_SECONDS
        self._slow: list[asyncio.Future[Any]] = []
        self._called: list[PluginHooks] = []

    async def call(self, names: Sequence[str]) -> Sequence[str]:
        """Call the hook of plugins; return those that one keeps, to be called as well."""
        hooks = PluginHooks(names)
        if not hooks.owners_of(_SHUTDOWN):
            return ()
        context = plugin_context(self._config, hooks)
        calling = _in_thread(partial(hooks.call, _SHUTDOWN, context=context))
        self._called.append(hooks)
        kept: Sequence[str] = ()
        if await self._ends(calling):
            results = calling.result()
        else:
            results, kept = hooks.abandon(_SHUTDOWN)
            late = _await_others(calling, hooks, [result for _plugin, result in results])
            self._slow.append(asyncio.ensure_future(late))
        for plugin, result in results:
            if inspect.isawaitable(result):
                await self._ends(asyncio.ensure_future(_await(_SHUTDOWN, hooks, plugin, result)))
        return kept

    async def finish(self) -> None:
        """Wait as long as there is time; log what has failed, and what has not ended then."""
        if self._slow:
            await asyncio.wait(self._slow, timeout=self._left())
        hanging = [one for one in self._slow if not one.done()]
        for one in hanging:
            one.cancel()
        for hooks in self._called:
            for problem in _problems_of(hooks):
                _log.error("plugin not stopped", problem=problem)
        if hanging:
            _log.error("plugins not stopped", seconds=_SHUTDOWN_SECONDS)

    async def _ends(self, work: asyncio.Future[Any]) -> bool:
        """Wait for half of the time that is left; return whether the work has ended."""
        await asyncio.wait([work], timeout=max(_LEAST_SECONDS, self._left() / 2))
        if not work.done():
            self._slow.append(work)
        return work.done()

    def _left(self) -> float:
        return max(0.0, self._until - asyncio.get_running_loop().time())


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run a function in a thread that keeps no process from ending, as those of asyncio do."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as problem:  # noqa: BLE001 - the waiting task raises it
            done.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(done)


async def _call(hook: str, config: Config, names: Sequence[str]) -> list[str]:
    """Call a hook in a thread, since it may block; return a sentence for each failure."""
    hooks = PluginHooks(names)
    if not hooks.owners_of(hook):
        return []
    context = plugin_context(config, hooks)
    results = await asyncio.to_thread(hooks.call, hook, context=context)
    for plugin, result in results:
        if inspect.isawaitable(result):
            await _await(hook, hooks, plugin, result)
    return _problems_of(hooks)


def _problems_of(hooks: PluginHooks) -> list[str]:
    return [problem for found in hooks.problems.values() for problem in found]


async def _await_others(
    calling: asyncio.Future[list[tuple[str, Any]]], hooks: PluginHooks, known: Sequence[Any]
) -> None:
    """Await what a call returns in the end, but for what is known of it."""
    for plugin, result in await calling:
        is_known = any(result is one for one in known)
        if inspect.isawaitable(result) and not is_known:
            await _await(_SHUTDOWN, hooks, plugin, result)


async def _await(hook: str, hooks: PluginHooks, plugin: str, result: Awaitable[Any]) -> None:
    """Await what the hook of a plugin has returned; add what it raises to the problems."""
    try:
        await result
    except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
        _log.error("hook failed", hook=hook, **where(problem))
        said = f"{hooks.sources[plugin].where}: {hook} failed: {type(problem).__name__}"
        hooks.report(plugin, [said])
