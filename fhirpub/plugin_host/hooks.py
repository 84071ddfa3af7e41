"""The hooks of plugins, as one pluggy manager calls them; what fails is named by plugin."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from fhirpub.errors import PluginError
from fhirpub.plugin_api import hookspecs
from fhirpub.plugin_api.hookspecs import HOOKS_OF_VERSION_1, group_of
from fhirpub.plugin_host.sources import PluginSource, installed, source_of
from fhirpub.suggestion import did_you_mean

HOOKS: Mapping[str, Callable[..., Any]] = {
    name: hook for name, hook in vars(hookspecs).items() if name.startswith("fhirpub_")
}
"""Every hook specification, by name."""
_YIELD = "a wrapper must yield once"
_ENDED = object()


def since_version(hook: str) -> int:
    """Return with which version of the plugin API a hook came."""
    return 1 if hook in HOOKS_OF_VERSION_1 else 2


class PluginHooks:
    """The hooks of some plugins.

    pluggy decides the order of a call: implementations with ``tryfirst``, then the others, then
    those with ``trylast``; within each of the three in the order of ``names``. Wrappers surround
    them all. ``problems`` has what is wrong with plugins, and what their hooks raised.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Import the plugins. Those that cannot be used are left out, with the reason."""
        self.problems: dict[str, list[str]] = {}
        self.sources: dict[str, PluginSource] = {}
        self._returned: list[tuple[str, Any]] = []
        self._begun: set[str] = set()
        self._is_abandoned = False
        self._lock = threading.Lock()
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        points, modules = installed(), {}
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                twice = f"[plugins] enabled: {name} is named twice, once is enough"
                self._add_problem(name, twice)
            try:
                source = source_of(name, points)
                modules[name] = import_plugin(source)
                self.sources[name] = source
            except PluginError as problem:
                self._add_problem(name, str(problem))
        for name in reversed(modules):  # pluggy calls what was registered last first
            self._register(self.sources[name], modules[name])

    def require_no_problems(self) -> None:
        """Raise PluginError with everything that is wrong, one problem a line."""
        if self.problems:
            raise PluginError("\n".join(chain.from_iterable(self.problems.values())))

    def report(self, plugin: str, problems: Sequence[str]) -> None:
        """Add to the problems of a plugin."""
        for problem in problems:
            self._add_problem(plugin, problem)

    def owners_of(self, hook: str) -> tuple[str, ...]:
        """Return which plugins have a hook, in the order in which they are called."""
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return tuple(each.plugin_name for each in reversed(implementations))

    def call(self, hook: str, **arguments: Any) -> list[tuple[str, Any]]:
        """Call a hook; return what came of it, each with its plugin, in the order of the calls.

        What a plugin raises is added to ``problems``, and the others are called nevertheless.
        """
        self._returned.clear()
        self._begun.clear()
        found = getattr(self._manager.hook, hook)(**arguments)
        made = {id(result): plugin for plugin, result in self._returned}
        return [(made.get(id(result), ""), result) for result in found]

    def abandon(self, hook: str) -> tuple[list[tuple[str, Any]], list[str]]:
        """Let the call of a hook in another thread, in which a plugin hangs, reach no further one.

        Returns what came of it so far, and the plugins that it has not reached: all of them if it
        has not begun.
        """
        with self._lock:
            self._is_abandoned = True
            left = [name for name in self.owners_of(hook) if name not in self._begun]
            return [*self._returned], left

    def _begin(self, plugin: str) -> bool:
        """Return whether the hook of a plugin may begin."""
        with self._lock:
            if not self._is_abandoned:
                self._begun.add(plugin)
            return not self._is_abandoned

    def declared(self, hook: str, kind: type[Any], **arguments: Any) -> list[tuple[str, Any]]:
        """Call a hook whose implementations return lists of a kind; return all their members.

        Each has its plugin. Anything else that was returned is added to ``problems``.
        """
        members = []
        for plugin, result in self.call(hook, **arguments):
            items = result if isinstance(result, list | tuple) else [result]
            strange = [item for item in items if not isinstance(item, kind)]
            if strange or items is not result:
                name = type((strange or items)[0]).__name__
                said = f"{hook} must return a list of {kind.__name__}, not {name}"
                self._add_problem(plugin, f"{self._where(plugin)}: {said}")
            else:
                members += [(plugin, item) for item in items]
        self._report_none(hook)
        return members

    def _report_none(self, hook: str) -> None:
        """Report the plugins whose hook has just returned None, unless they have a problem."""
        for plugin, result in self._returned:
            if result is None and plugin not in self.problems:
                said = f"{hook} returned None, so adds nothing"
                self._add_problem(plugin, f"{self._where(plugin)}: {said}")

    def _where(self, plugin: str) -> str:
        return self.sources[plugin].where if plugin in self.sources else "plugins"

    def _add_problem(self, plugin: str, text: str) -> None:
        self.problems.setdefault(plugin, []).extend(text.splitlines())

    def _register(self, source: PluginSource, module: ModuleType) -> None:
        """Register proxies of the hooks of a plugin, which report what these raise."""
        proxy = ModuleType(source.module)
        for name, options in _implementations(module):
            is_wrapper = options["wrapper"] or options["hookwrapper"]
            report = self._reporting_wrapper if is_wrapper else self._reporting
            setattr(proxy, name, report(source, getattr(module, name)))
        try:
            self._manager.register(proxy, name=source.name)
        except (pluggy.PluginValidationError, ValueError) as problem:
            self._add_problem(source.name, f"{source.where}: {_one_line(problem)}")

    def _reporting(self, source: PluginSource, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            if not self._begin(source.name):
                return None
            try:
                result = function(*arguments)
            except (Exception, SystemExit) as problem:  # noqa: BLE001 - of any kind, another's code
                self._add_problem(source.name, describe_failure(source, function, problem))
                return None
            self._returned.append((source.name, result))
            return result

        return call

    def _reporting_wrapper(self, source: PluginSource, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any) -> Generator[Any, Any, Any]:
            if not self._begin(source.name):
                return (yield)
            try:
                wrapper = _begin_wrapper(function(*arguments))
            except (Exception, SystemExit) as problem:  # noqa: BLE001 - of any kind, another's code
                self._add_problem(source.name, describe_failure(source, function, problem))
                return (yield)
            found = yield
            try:
                result = _end_wrapper(wrapper, found)
            except (Exception, SystemExit) as problem:  # noqa: BLE001 - of any kind, another's code
                self._add_problem(source.name, describe_failure(source, function, problem))
                return []
            if not isinstance(result, list | tuple):
                said = (
                    f"the wrapper {function.__name__} must return a list of what others returned"
                )
                self._add_problem(source.name, f"{source.where}: {said}")
                return []
            known = {id(item) for _, item in self._returned}
            self._returned += [(source.name, item) for item in result if id(item) not in known]
            return result

        return call


def _begin_wrapper(wrapper: Any) -> Generator[Any, Any, Any]:
    """Run a wrapper until others are to be called."""
    if not isinstance(wrapper, Generator) or next(wrapper, _ENDED) is _ENDED:
        raise TypeError(_YIELD)
    return wrapper


def _end_wrapper(wrapper: Generator[Any, Any, Any], found: Any) -> Any:
    """Run a wrapper to its end with what others returned, and return its own result."""
    try:
        wrapper.send(found)
    except StopIteration as end:
        return end.value
    raise TypeError(_YIELD)


def hooks_of(source: PluginSource) -> tuple[str, ...]:
    """Return the hooks that a plugin implements, once it is imported. Raises PluginError."""
    return tuple(name for name, _options in _implementations(import_plugin(source)))


def import_plugin(source: PluginSource) -> ModuleType:
    """Import a plugin and check its hooks. Raises PluginError."""
    try:
        module = importlib.import_module(source.module)
    except (Exception, SystemExit) as problem:
        said = f"cannot be imported: {_words(problem)}{_place(problem, source.module)}"
        raise PluginError(f"{source.where}: {said}") from problem
    problems = list(_hook_problems(source, module))
    if problems:
        raise PluginError("\n".join(f"{source.where}: {problem}" for problem in problems))
    return module


def describe_failure(
    source: PluginSource, function: Callable[..., Any], problem: BaseException
) -> str:
    """Return what a hook raised, with its plugin and the place in the plugin's own code."""
    name = getattr(function, "__name__", "a hook")
    place = _place(problem, source.module)
    return f"{source.where}: {name} failed: {_words(problem)}{place}"


def _implementations(module: ModuleType) -> Iterator[tuple[str, pluggy.HookimplOpts]]:
    """Yield the hooks that a module implements, with the options of pluggy."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    for name in HOOKS:
        # Older releases of pluggy demand that there is such a function.
        options = manager.parse_hookimpl_opts(module, name) if hasattr(module, name) else None
        if options is not None:
            yield name, options


def _hook_problems(source: PluginSource, module: ModuleType) -> Iterator[str]:
    """Report unknown hooks: misspelt, they would be ignored silently."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    hooks = 0
    for name in dir(module):
        if manager.parse_hookimpl_opts(module, name) is None:
            if name in HOOKS and inspect.isfunction(getattr(module, name)):
                yield f"{name} is not marked with @hookimpl, so nobody would call it"
            continue
        hooks += 1
        if name in HOOKS:
            yield from _misfits(source, name, getattr(module, name))
        else:
            yield f"{name} is not a hook{_nearest_hook(name)}"
    if not hooks:
        yield f"has no hook {', '.join(HOOKS)}, so adds nothing"


def _misfits(source: PluginSource, name: str, function: Callable[..., Any]) -> Iterator[str]:
    since = since_version(name)
    if source.api < since:
        yield (
            f"{name} is a hook of version {since} of the plugin API, and the plugin was made for "
            f"version {source.api}: give its entry point the group {group_of(since)}"
        )
    taken = inspect.signature(function).parameters
    given = inspect.signature(HOOKS[name]).parameters
    strange = [item for item in taken if item not in given]
    if strange:
        known = ", ".join(given) or "no arguments"
        yield f"{name} takes {', '.join(strange)!r}, but is called with {known}"


def _nearest_hook(word: str) -> str:
    return "; " + (did_you_mean(word, HOOKS) or f"hooks are {', '.join(HOOKS)}")


def _words(problem: BaseException) -> str:
    if isinstance(problem, SyntaxError):  # its text names the place, which is reported anyway
        return f"{type(problem).__name__}: {problem.msg}"
    return f"{type(problem).__name__}: {_one_line(problem)}"


def _place(problem: BaseException, module: str) -> str:
    """Return where in the plugin's own code it happened, as far as that is known."""
    package = module.partition(".")[0]
    own = [
        frame_summary
        for frame_summary in traceback.extract_tb(problem.__traceback__)
        if package in (Path(frame_summary.filename).stem, *Path(frame_summary.filename).parts)
    ]
    if isinstance(problem, SyntaxError) and problem.filename:
        return f" (in {Path(problem.filename).name}, line {problem.lineno})"
    return f" (in {Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or "no message"
