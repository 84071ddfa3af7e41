"""Turn the configured names of plugins into resource types, or say in a sentence why not."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pluggy

from fhirpub.errors import PluginError
from fhirpub.plugin_api import Part, ResourceType, hookspecs

GROUP = "fhirpub.plugins"
_HOOKS = [name for name in vars(hookspecs) if name.startswith("fhirpub_")]
_TYPE = re.compile(r"[A-Z][A-Za-z]*")
_ELEMENT = re.compile(r"[a-z][A-Za-z0-9]*")
_PATH = re.compile(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*")
_ELEMENT_OR_CHOICE = re.compile(r"[a-z][A-Za-z0-9]*(\[x\])?")
_CODE = re.compile(r"[^\s]+( [^\s]+)*")
_NEVER_UPDATED = frozenset({"resourceType", "id", "meta", "identifier"})
_RESERVED_NAMES = frozenset({"issues"})


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where an installed plugin lives: its module, and the distribution that brought it."""

    name: str
    module: str
    distribution: str
    version: str


def available() -> tuple[PluginSource, ...]:
    """Return every installed plugin, by name, whether it is enabled or not."""
    found = set()
    for point in importlib.metadata.entry_points(group=GROUP):
        owner = point.dist
        name, version = (owner.name, owner.version) if owner is not None else ("", "")
        found.add(PluginSource(point.name, point.module, name, version))
    return tuple(sorted(found, key=lambda each: (each.name, each.module, each.version)))


def load(enabled: Sequence[str]) -> dict[str, ResourceType]:
    """Return the resource types of the enabled plugins, by type name, in that order.

    Raises PluginError for the first plugin that cannot be used.
    """
    sources = available()
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for position, name in enumerate(enabled):
        if name in enabled[:position]:
            raise PluginError(f"[plugins] enabled: {name} is named twice, once is enough")
        _register(manager, _source_of(name, sources))
    _check_hooks(manager)
    types: dict[str, ResourceType] = {}
    owners: dict[str, str] = {}
    for name in enabled:
        for declared in _resource_types(manager, name):
            _check_new(declared, name, owners)
            types[declared.name] = declared
            owners[declared.name] = name
    _check_parts(types, owners)
    return types


def _source_of(name: str, sources: Sequence[PluginSource]) -> PluginSource:
    matches = [each for each in sources if each.name == name]
    modules = {each.module for each in matches}
    if len(modules) > 1:
        homes = " and ".join(f"{each.module} of {each.distribution}" for each in matches)
        raise PluginError(f"plugin {name}: two packages use this name, {homes}; uninstall one")
    if not matches:
        known = [each.name for each in sources]
        raise PluginError(f"[plugins] enabled: there is no plugin {name}{_nearest(name, known)}")
    return matches[0]


def _nearest(word: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]}?"
    if not names:
        return "; none is installed"
    return f"; installed are {', '.join(names)}"


def _register(manager: pluggy.PluginManager, source: PluginSource) -> None:
    where = f"plugin {source.name} ({source.module})"
    try:
        module = importlib.import_module(source.module)
    except Exception as problem:
        raise PluginError(f"{where}: cannot be imported: {_words(problem)}") from problem
    try:
        manager.register(module, name=source.name)
    except (pluggy.PluginValidationError, ValueError) as problem:
        raise PluginError(f"{where}: {_one_line(problem)}") from problem


def _check_hooks(manager: pluggy.PluginManager) -> None:
    """Refuse a hook nobody calls: misspelt, it would otherwise be ignored in silence."""
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as problem:
        name = manager.get_name(problem.plugin)
        known = {hook.name for hook in manager.get_hookcallers(problem.plugin) or ()}
        strange = min(known - set(_HOOKS))
        raise PluginError(
            f"plugin {name}: {strange} is not a hook{_nearest_hook(strange)}"
        ) from problem


def _nearest_hook(word: str) -> str:
    near = difflib.get_close_matches(word, _HOOKS, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; hooks are {', '.join(_HOOKS)}"


def _resource_types(manager: pluggy.PluginManager, name: str) -> Sequence[ResourceType]:
    """Call one plugin's hook; the typed face of pluggy's relay."""
    others = [plugin for other, plugin in manager.list_name_plugin() if other != name]
    call = manager.subset_hook_caller("fhirpub_resource_types", others)
    try:
        answers = cast("list[Any]", call())
    except Exception as problem:
        raise PluginError(
            f"plugin {name}: fhirpub_resource_types failed: {_words(problem)}"
        ) from problem
    if not answers:
        raise PluginError(f"plugin {name}: has no hook fhirpub_resource_types, so adds nothing")
    (declared,) = answers
    members = declared if isinstance(declared, list | tuple) else [declared]
    strange = [each for each in members if not isinstance(each, ResourceType)]
    if strange or members is not declared:
        raise PluginError(
            f"plugin {name}: fhirpub_resource_types must return a list of ResourceType, "
            f"not {type((strange or members)[0]).__name__}"
        )
    return cast("Sequence[ResourceType]", declared)


def _check_new(declared: ResourceType, plugin: str, owners: Mapping[str, str]) -> None:
    if declared.name in owners:
        raise PluginError(
            f"plugin {plugin}: {declared.name} is already added by plugin {owners[declared.name]}"
        )
    problems = _malformed(declared) or _contradictions(declared)
    if problems:
        raise PluginError("\n".join(f"plugin {plugin}: {declared.name}: {p}" for p in problems))


def _check_parts(types: Mapping[str, ResourceType], owners: Mapping[str, str]) -> None:
    """Refuse a part whose type is registered by itself: one URL would mean two things."""
    for declared in types.values():
        for part in declared.parts:
            if part.type in types:
                raise PluginError(
                    f"plugin {owners[declared.name]}: part {part.name} of {declared.name} is a "
                    f"{part.type}, which plugin {owners[part.type]} registers by itself; "
                    "a type is one or the other"
                )


_SHAPES: Mapping[str, tuple[type[Any], re.Pattern[str]]] = {
    "create_statuses": (frozenset, _CODE),
    "update_statuses": (frozenset, _CODE),
    "updatable": (frozenset, _ELEMENT_OR_CHOICE),
    "attachments": (tuple, _ELEMENT),
    "times": (tuple, _PATH),
    "codings": (tuple, _PATH),
    "summary": (tuple, _ELEMENT_OR_CHOICE),
}


def _malformed(declared: ResourceType) -> list[str]:
    """Return what is not even well formed, such as ("x") where ("x",) was meant."""
    found = [] if _matches(_TYPE, declared.name) else ["the name must be that of a FHIR type"]
    for field, (kind, shape) in _SHAPES.items():
        value = getattr(declared, field)
        if isinstance(value, kind):
            strange = [each for each in value if not _matches(shape, each)]
            found += [f"{field} holds {each!r}, which cannot be a name" for each in strange]
        else:
            found.append(f"{field} must be a {kind.__name__}, not {type(value).__name__}")
    for field in ("rules", "events"):
        if not callable(getattr(declared, field)):
            found.append(f"{field} must be a function")
    parts: Any = declared.parts
    if not isinstance(parts, tuple) or not all(isinstance(each, Part) for each in parts):
        found.append("parts must be a tuple of Part")
    return found


def _contradictions(declared: ResourceType) -> list[str]:
    """Return what the declaration says against itself."""
    found = []
    if not declared.create_statuses:
        found.append("create_statuses is empty, so nothing could ever be registered")
    if ("status" in declared.updatable) != bool(declared.update_statuses):
        found.append("status is updatable if, and only if, update_statuses names some")
    fixed = _NEVER_UPDATED | {part.referred_by.partition(".")[0] for part in declared.parts}
    found += [f"{each} can never be updatable" for each in sorted(declared.updatable & fixed)]
    if declared.attachments_required and not declared.attachments:
        found.append("attachments_required is set, but there are no attachments")
    twice = sorted(set(declared.attachments) & set(declared.summary))
    found += [f"{each} is an attachment and cannot be in the summary" for each in twice]
    return [*found, *_part_problems(declared)]


def _part_problems(declared: ResourceType) -> list[str]:
    found = []
    seen = {declared.entry_name, *_RESERVED_NAMES}
    for part in declared.parts:
        if part.name in seen:
            found.append(f"part {part.name}: the name is taken, choose another")
        seen.add(part.name)
        if not _matches(_TYPE, part.type):
            found.append(f"part {part.name}: {part.type!r} is not the name of a FHIR type")
        if not _matches(_PATH, part.referred_by) and (part.required or part.referred_by != ""):
            found.append(f"part {part.name}: {part.referred_by!r} is not the name of an element")
    return found


def _matches(shape: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and shape.fullmatch(value) is not None


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {_one_line(problem)}"


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split()) or "no message"
