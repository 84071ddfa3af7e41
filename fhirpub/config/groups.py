"""The groups of a configuration: the built-in ones, those of types, and those of plugins."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, cast

from fhirpub.config.reader import PREFIX, Groups
from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import ConfigurationError

PluginGroups = Callable[[Sequence[str]], Mapping[str, type[Any]]]
"""Returns the classes of the settings of some plugins, by the name of the plugin."""


def no_groups(_names: Sequence[str]) -> Mapping[str, type[Any]]:
    """Return that no plugin has settings."""
    return {}


def create_config(
    values: Mapping[str, dict[str, Any]], groups: Groups, own: Mapping[str, type[Any]]
) -> Config:
    """Create the settings from their values, those of plugins and types apart."""
    ours = {name: item for name, item in groups.items() if name in typing.get_type_hints(Config)}
    made = {name: group(**values[name]) for name, group in ours.items()}
    of_types, of_plugins = {}, {}
    for name in values.keys() - ours.keys():
        fields = {field.name for field in dataclasses.fields(TypeConfig)}
        chosen = {key: value for key, value in values[name].items() if key in fields}
        if chosen:
            of_types[name] = TypeConfig(**chosen)
        rest = {key: value for key, value in values[name].items() if key not in fields}
        if rest:
            try:
                of_plugins[name] = own[name](**rest)
            except ValueError as problem:
                raise ConfigurationError(f"[{name}] {problem}") from None
    return Config(**made, by_type=of_types, by_plugin=of_plugins)


def has_own_settings(name: str, tables: Mapping[str, Any], variables: Mapping[str, str]) -> bool:
    """Return whether something is set of a plugin that is no option of a resource type."""
    table = tables.get(name)
    keys = set(table) if isinstance(table, dict) else set()
    start = f"{PREFIX}{name}__".upper()
    keys |= {
        variable.upper().removeprefix(start).lower()
        for variable in variables
        if variable.upper().startswith(start)
    }
    return bool(keys - {field.name for field in dataclasses.fields(TypeConfig)})


def groups_of(
    enabled: Sequence[str], own: Mapping[str, type[Any]] | None = None
) -> dict[str, Any]:
    """Return all groups: the built-in ones, and one for each enabled plugin.

    ``own`` are the settings of plugins, which come after the options of a resource type.
    """
    hints = typing.get_type_hints(Config)
    ours = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = own or {}
    return ours | {
        name: _joined(name, own[name]) if name in own else TypeConfig
        for name in enabled
        if name not in ours
    }


def _joined(name: str, own: type[Any]) -> type[Any]:
    """Return a class with the options of a resource type and the settings of its plugin."""
    fields: list[Any] = []
    for group in (TypeConfig, own):
        hints = typing.get_type_hints(group)
        for field in dataclasses.fields(group):
            default = field.default
            if default is dataclasses.MISSING:
                again = dataclasses.field(
                    default_factory=cast("Any", field.default_factory), metadata=field.metadata
                )
            else:
                again = dataclasses.field(default=default, metadata=field.metadata)
            fields.append((field.name, hints[field.name], again))
    joined = dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True)
    joined.__doc__ = own.__doc__
    return joined
