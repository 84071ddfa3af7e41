"""Turn the configured names of plugins into resource types, or raise the reason in a sentence."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pluggy

from fhirpub.errors import PluginError
from fhirpub.plugin_api import KeyProvider, ResourceType, SearchParameter, hookspecs
from fhirpub.plugin_api.hookspecs import API_VERSION
from fhirpub.plugin_host.declaration_check import problems_of
from fhirpub.suggestion import did_you_mean

_GROUP = re.compile(r"fhirpub\.plugins(\.v(?P<version>[1-9][0-9]*))?")
_PROVIDER = re.compile(r"[a-z][a-z0-9-]*")
_HOOKS = [name for name in vars(hookspecs) if name.startswith("fhirpub_")]


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where an installed plugin lives: its module, and the distribution that brought it.

    ``api`` is the version of the plugin API that it was made for.
    """

    name: str
    module: str
    distribution: str
    version: str
    api: int = API_VERSION


def available() -> tuple[PluginSource, ...]:
    """Return every installed plugin, by name, whether it is enabled or not."""
    return tuple(point for point in installed() if point.api == API_VERSION)


def installed() -> list[PluginSource]:
    """Return the entry points of every version of the plugin API."""
    found = set()
    versions = map(_GROUP.fullmatch, importlib.metadata.entry_points().groups)
    for group in filter(None, versions):
        for point in importlib.metadata.entry_points(group=group[0]):
            owner = point.dist
            name, version = (owner.name, owner.version) if owner is not None else ("", "")
            api = int(group["version"] or 1)
            found.add(PluginSource(point.name, point.module, name, version, api))
    return sorted(found, key=lambda each: (each.name, each.module, each.version, each.api))


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What the enabled plugins add, and everything that is wrong with them.

    ``types`` and ``owners``, the plugins that add them, are by type name, in the order of the
    plugins; ``problems`` are sentences by plugin.
    """

    types: Mapping[str, ResourceType]
    owners: Mapping[str, str]
    problems: Mapping[str, Sequence[str]]


def load(enabled: Sequence[str]) -> dict[str, ResourceType]:
    """Return the resource types of the enabled plugins, by type name, in that order.

    Raises PluginError with everything that is wrong, one problem a line.
    """
    return dict(load_with_owners(enabled).types)


def load_with_owners(enabled: Sequence[str]) -> PluginReport:
    """Return what the enabled plugins add, without any problem.

    Raises PluginError with everything that is wrong, one problem a line.
    """
    found = examine(enabled)
    if found.problems:
        raise PluginError("\n".join(chain.from_iterable(found.problems.values())))
    return found


def examine(enabled: Sequence[str]) -> PluginReport:
    """Import the enabled plugins and validate their declarations."""
    points = installed()
    types: dict[str, ResourceType] = {}
    owners: dict[str, str] = {}
    problems: dict[str, list[str]] = {}
    for name in dict.fromkeys(enabled):
        found: list[str] = []
        if enabled.count(name) > 1:
            found.append(f"[plugins] enabled: {name} is named twice, once is enough")
        try:
            for declared in _declared_by(_source_of(name, points)):
                found += _problems_in(declared, name, owners)
                types.setdefault(str(declared.name), declared)
                owners.setdefault(str(declared.name), name)
        except PluginError as problem:
            found += str(problem).splitlines()
        if found:
            problems[name] = found
    shared = chain(_shared_parts(types, owners), _shared_members(types, owners))
    for name, said in () if problems else shared:
        problems.setdefault(name, []).append(said)
    return PluginReport(types, owners, problems)


def _source_of(name: str, points: Sequence[PluginSource]) -> PluginSource:
    named = [point for point in points if point.name == name]
    matches = [plugin_source for plugin_source in named if plugin_source.api == API_VERSION]
    modules = {match.module for match in matches}
    if len(modules) > 1:
        homes = " and ".join(f"{match.module} of {match.distribution}" for match in matches)
        raise PluginError(f"plugin {name}: two packages use this name, {homes}; uninstall one")
    if named and not matches:
        raise PluginError(_requires_another_version(named[0]))
    if not matches:
        known = [point.name for point in points]
        raise PluginError(f"[plugins] enabled: there is no plugin {name}{_nearest(name, known)}")
    return matches[0]


def _requires_another_version(source: PluginSource) -> str:
    return (
        f"plugin {source.name} ({source.module} of {source.distribution} {source.version}): "
        f"was made for version {source.api} of the plugin API, and this service has version "
        f"{API_VERSION}; install a release of it that was made for version {API_VERSION}"
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    others = f"installed are {', '.join(names)}" if names else "none is installed"
    return f"; {did_you_mean(word, names) or others}"


def load_key_provider(enabled: Sequence[str]) -> KeyProvider | None:
    """Return what wraps the keys of the store, None if no enabled plugin does. Raises PluginError.

    Plugins are imported for it: it is only called where a key is wrapped or created.
    """
    points = installed()
    found = {}
    for name in dict.fromkeys(enabled):
        source = _source_of(name, points)
        where, manager = _place_of(source), _import_plugin(source)
        for provider in _call(manager, "fhirpub_key_provider", where):
            if not isinstance(provider, KeyProvider) or not _PROVIDER.fullmatch(provider.name):
                raise PluginError(
                    f"{where}: fhirpub_key_provider must return a KeyProvider whose name is of "
                    "lower-case letters, digits and hyphens"
                )
            found[name] = provider
    if len(found) > 1:
        raise PluginError(
            f"the plugins {' and '.join(found)} have fhirpub_key_provider: enable one"
        )
    return next(iter(found.values()), None)


def hooks_of(source: PluginSource) -> tuple[str, ...]:
    """Return the hooks that a plugin implements, once it is imported. Raises PluginError."""
    manager = _import_plugin(source)
    return tuple(name for name in _HOOKS if getattr(manager.hook, name).get_hookimpls())


def _declared_by(source: PluginSource) -> Sequence[ResourceType]:
    """Return the resource types of a plugin; none if it only has other hooks."""
    where, manager = _place_of(source), _import_plugin(source)
    if not manager.hook.fhirpub_resource_types.get_hookimpls():
        return ()
    return _resource_types(_call(manager, "fhirpub_resource_types", where), where)


def _place_of(source: PluginSource) -> str:
    return f"plugin {source.name} ({source.module})"


def _import_plugin(source: PluginSource) -> pluggy.PluginManager:
    """Import a plugin and return a manager of its hooks. Raises PluginError."""
    where = _place_of(source)
    try:
        module = importlib.import_module(source.module)
    except (Exception, SystemExit) as problem:
        said = f"cannot be imported: {_words(problem)}{_place(problem, source.module)}"
        raise PluginError(f"{where}: {said}") from problem
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    problems = list(_hook_problems(manager, module))
    if problems:
        raise PluginError("\n".join(f"{where}: {name}" for name in problems))
    try:
        manager.register(module, name=source.name)
    except (pluggy.PluginValidationError, ValueError) as problem:
        raise PluginError(f"{where}: {_one_line(problem)}") from problem
    return manager


def _call(manager: pluggy.PluginManager, hook: str, where: str) -> list[Any]:
    """Call a hook; the typed face of pluggy's relay."""
    ((_name, module),) = manager.list_name_plugin()
    try:
        return cast("list[Any]", getattr(manager.hook, hook)())
    except (Exception, SystemExit) as problem:
        place = _place(problem, getattr(module, "__name__", ""))
        raise PluginError(f"{where}: {hook} failed: {_words(problem)}{place}") from problem


def _hook_problems(manager: pluggy.PluginManager, module: ModuleType) -> Iterator[str]:
    """Report unknown hooks: misspelt, they would be ignored silently."""
    hooks = 0
    for name in dir(module):
        marked = manager.parse_hookimpl_opts(module, name)
        if marked is None:
            if name in _HOOKS:
                yield f"{name} is not marked with @hookimpl, so nobody would call it"
            continue
        hooks += 1
        if name not in _HOOKS:
            yield f"{name} is not a hook{_nearest_hook(name)}"
            continue
        taken = inspect.signature(getattr(module, name)).parameters
        given = inspect.signature(getattr(hookspecs, name)).parameters
        strange = [item for item in taken if item not in given]
        if strange:
            known = ", ".join(given) or "no arguments"
            yield f"{name} takes {', '.join(strange)!r}, but is called with {known}"
    if not hooks:
        yield f"has no hook {', '.join(_HOOKS)}, so adds nothing"


def _nearest_hook(word: str) -> str:
    return "; " + (did_you_mean(word, _HOOKS) or f"hooks are {', '.join(_HOOKS)}")


def _resource_types(answers: Sequence[Any], where: str) -> Sequence[ResourceType]:
    if not answers:
        raise PluginError(f"{where}: fhirpub_resource_types returned None, so adds nothing")
    (declared,) = answers
    members = declared if isinstance(declared, list | tuple) else [declared]
    strange = [member for member in members if not isinstance(member, ResourceType)]
    if strange or members is not declared:
        raise PluginError(
            f"{where}: fhirpub_resource_types must return a list of ResourceType, "
            f"not {type((strange or members)[0]).__name__}"
        )
    return cast("Sequence[ResourceType]", declared)


def _problems_in(declared: ResourceType, plugin: str, owners: Mapping[str, str]) -> Iterator[str]:
    other = owners.get(str(declared.name))
    if other is not None:
        yield f"plugin {plugin}: {declared.name} is already added by plugin {other}"
    for problem in problems_of(declared):
        yield f"plugin {plugin}: {declared.name}: {problem}"


def _shared_parts(
    types: Mapping[str, ResourceType], owners: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Report parts whose type is also registered on its own: one URL would mean two things."""
    for declared in types.values():
        for part in declared.parts:
            if part.type in types and not part.repeats:
                owner = owners[declared.name]
                said = (
                    f"part {part.name} of {declared.name} is a {part.type}, "
                    f"which plugin {owners[part.type]} registers by itself; "
                    "a type is one or the other"
                )
                yield owner, f"plugin {owner}: {said}"


def _shared_members(
    types: Mapping[str, ResourceType], owners: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Report contradictions about a type whose resources come from several declarations."""
    declared: dict[tuple[str, str], SearchParameter] = {}
    for name, resource_type in types.items():
        declared |= {(name, parameter.name): parameter for parameter in resource_type.search}
    patients: dict[str, str] = {}
    repeating = ((one.name, part) for one in types.values() for part in one.parts if part.repeats)
    for name, part in repeating:
        found = [
            f"search parameter {parameter.name} of {part.type} is declared elsewhere with another "
            "type or other elements"
            for parameter in part.search
            if _differs(parameter, declared.setdefault((part.type, parameter.name), parameter))
        ]
        if patients.setdefault(part.type, part.patient) != part.patient:
            found.append(f"another part of type {part.type} has its patient elsewhere")
        for said in found:
            yield owners[name], f"plugin {owners[name]}: part {part.name} of {name}: {said}"


def _differs(one: SearchParameter, other: SearchParameter) -> bool:
    return (one.type, one.paths) != (other.type, other.paths)


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
