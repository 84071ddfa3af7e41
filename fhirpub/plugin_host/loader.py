"""Turn the configured names of plugins into resource types, or raise the reason in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from fhirpub.errors import PluginError
from fhirpub.plugin_api import KeyProvider, ResourceType, SearchParameter
from fhirpub.plugin_host.declaration_check import problems_of
from fhirpub.plugin_host.hooks import PluginHooks

_PROVIDER = re.compile(r"[a-z][a-z0-9-]*")
_DECLARED_OTHERWISE = "is declared elsewhere with another type or other elements"


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
    """Import the enabled plugins and validate the types that they declare."""
    hooks = PluginHooks(enabled)
    types: dict[str, ResourceType] = {}
    owners: dict[str, str] = {}
    declarations = hooks.declared("fhirpub_resource_types", ResourceType)
    problems = {name: list(found) for name, found in hooks.problems.items()}
    for name, declared in declarations:
        for problem in _problems_in(declared, name, owners):
            problems.setdefault(name, []).append(problem)
        types.setdefault(str(declared.name), declared)
        owners.setdefault(str(declared.name), name)
    shared = chain(_shared_parts(types, owners), _shared_members(types, owners))
    for name, said in () if problems else shared:
        problems.setdefault(name, []).append(said)
    in_order = {name: problems[name] for name in enabled if name in problems}
    return PluginReport(types, owners, in_order | problems)


def load_key_provider(enabled: Sequence[str]) -> KeyProvider | None:
    """Return what wraps the keys of the store, None if no enabled plugin does. Raises PluginError.

    Plugins are imported for it: it is only called where a key is wrapped or created.
    """
    hooks = PluginHooks(enabled)
    hooks.require_no_problems()
    found = hooks.call("fhirpub_key_provider")
    hooks.require_no_problems()
    for name, provider in found:
        _check_key_provider(provider, name, hooks)
    if len(found) > 1:
        owners = " and ".join(name for name, _ in found)
        raise PluginError(f"the plugins {owners} have fhirpub_key_provider: enable one")
    return found[0][1] if found else None


def _check_key_provider(provider: object, plugin: str, hooks: PluginHooks) -> None:
    if not isinstance(provider, KeyProvider) or not _PROVIDER.fullmatch(provider.name):
        raise PluginError(
            f"{hooks.sources[plugin].where}: fhirpub_key_provider must return a KeyProvider "
            "whose name is of lower-case letters, digits and hyphens"
        )


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
    declared = _own_parameters(types)
    patients: dict[str, str] = {}
    repeating = ((one.name, part) for one in types.values() for part in one.parts if part.repeats)
    for name, part in repeating:
        found = [
            f"search parameter {parameter.name} of {part.type} {_DECLARED_OTHERWISE}"
            for parameter in part.search
            if _differs(parameter, declared.setdefault((part.type, parameter.name), parameter))
        ]
        if patients.setdefault(part.type, part.patient) != part.patient:
            found.append(f"another part of type {part.type} has its patient elsewhere")
        for said in found:
            yield owners[name], f"plugin {owners[name]}: part {part.name} of {name}: {said}"


def _own_parameters(types: Mapping[str, ResourceType]) -> dict[tuple[str, str], SearchParameter]:
    """Return the search parameters that types declare for themselves, by type and name."""
    return {
        (name, parameter.name): parameter
        for name, declared in types.items()
        for parameter in declared.search
    }


def _differs(one: SearchParameter, other: SearchParameter) -> bool:
    return (one.type, one.paths) != (other.type, other.paths)
