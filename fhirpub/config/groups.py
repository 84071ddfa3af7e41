"""The groups of a configuration: the built-in ones, those of types, and those of plugins."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import is_dataclass
from typing import Any

from fhirpub.config.reader import settings_in
from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError

_TYPE_OPTIONS = frozenset(field.name for field in dataclasses.fields(TypeConfig))

PluginGroups = Callable[[Sequence[str]], Mapping[str, type[Any]]]
"""Returns the classes of the settings of some plugins, by the name of the plugin."""


def no_groups(_names: Sequence[str]) -> Mapping[str, type[Any]]:
    """Return that no plugin has settings."""
    return {}


def create_config(values: Mapping[str, dict[str, Any]], own: Mapping[str, type[Any]]) -> Config:
    """Create the settings from their values, those of plugins and types apart.

    Raises ConfigurationError with what the plugins refuse of theirs, one per line.
    """
    ours = _built_in()
    made = {name: group(**values[name]) for name, group in ours.items()}
    of_types, of_plugins, problems = {}, {}, []
    for name in values.keys() - ours.keys():
        chosen = {key: value for key, value in values[name].items() if key in _TYPE_OPTIONS}
        if chosen:
            of_types[name] = TypeConfig(**chosen)
        rest = {key: value for key, value in values[name].items() if key not in _TYPE_OPTIONS}
        if rest:
            try:
                of_plugins[name] = own[name](**rest)
            except ValueError as problem:
                problems.append(f"[{name}] {problem}")
    if problems:
        raise ConfigurationError("\n".join(sorted(problems)))
    return Config(**made, by_type=of_types, by_plugin=of_plugins)


def has_own_settings(name: str, tables: Mapping[str, Any], variables: Mapping[str, str]) -> bool:
    """Return whether something is set of a plugin that is no option of a resource type."""
    table = tables.get(name)
    keys = set(table) if isinstance(table, dict) else set()
    keys |= {key for _variable, group, key in settings_in(variables) if group == name}
    return not keys <= _TYPE_OPTIONS


def groups_of(
    enabled: Sequence[str], own: Mapping[str, type[Any]] | None = None
) -> dict[str, Any]:
    """Return all groups: the built-in ones, and one for each enabled plugin.

    ``own`` are the settings of plugins, which come after the options of a resource type.
    """
    ours, own = _built_in(), own or {}
    return ours | {
        name: _joined(name, own[name]) if name in own else TypeConfig
        for name in enabled
        if name not in ours
    }


def _built_in() -> dict[str, Any]:
    hints = typing.get_type_hints(Config)
    return {name: hint for name, hint in hints.items() if is_dataclass(hint)}


def _joined(name: str, own: type[Any]) -> type[Any]:
    """Return a class with the options of a resource type and the settings of its plugin."""
    hints = typing.get_type_hints(TypeConfig) | typing.get_type_hints(own)
    fields = [
        (field.name, hints[field.name], copy(field))
        for group in (TypeConfig, own)
        for field in dataclasses.fields(group)
    ]
    joined = dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True)
    joined.__doc__ = own.__doc__
    return joined
