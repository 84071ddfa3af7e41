"""The settings of plugins: which groups there are, and what the hooks are given of them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_api.context import PluginContext
from fhirpub.plugin_host.hooks import PluginHooks

_TYPES = (str, int, float, bool, list[str], list[int], list[float])


def setting_groups(names: Sequence[str]) -> dict[str, type[Any]]:
    """Return the class of the settings of each plugin that has some, by its name.

    Raises PluginError with everything that is wrong, one problem a line.
    """
    hooks = PluginHooks(names)
    groups = settings_of(hooks)
    hooks.require_no_problems()
    return groups


def settings_of(hooks: PluginHooks) -> dict[str, type[Any]]:
    """Return the class of the settings of each plugin; report what is wrong to ``hooks``."""
    groups: dict[str, type[Any]] = {}
    for plugin, group in hooks.call("fhirpub_settings"):
        found = list(_problems(plugin, group))
        where = hooks.sources[plugin].where
        hooks.report(plugin, [f"{where}: fhirpub_settings {problem}" for problem in found])
        if not found:
            groups[plugin] = group
    return groups


def plugin_context(config: Config, hooks: PluginHooks) -> PluginContext:
    """Return what hooks are given. Raises PluginError for defaults that are no valid settings."""
    groups = {}
    for plugin, group in settings_of(hooks).items():
        try:
            groups[group] = config.by_plugin.get(plugin) or group()
        except ValueError as problem:
            raise PluginError(f"[{plugin}] {problem}") from None
    return PluginContext(
        base_url=config.base_url, environment=config.auth.environment, groups=groups
    )


@contextmanager
def declarations(
    config: Config, hook: str, kind: Any
) -> Iterator[tuple[PluginHooks, list[tuple[str, Any]]]]:
    """Yield what enabled plugins declare by a hook, each with its plugin, for the block to check.

    Nothing is asked of plugins without the hook. Raises PluginError with everything that is wrong,
    one problem a line, what the block has reported included.
    """
    hooks = PluginHooks(config.plugins.enabled)
    if not hooks.owners_of(hook):
        yield hooks, []
        return
    yield hooks, hooks.declared(hook, kind, context=plugin_context(config, hooks))
    hooks.require_no_problems()


def _problems(plugin: str, group: Any) -> Iterator[str]:
    """Yield what keeps a class from being the group of settings of a plugin."""
    if plugin in typing.get_type_hints(Config):
        yield f"needs a plugin of another name: [{plugin}] has settings of the service"
    if not isinstance(group, type) or not dataclasses.is_dataclass(group):
        yield "must return a dataclass"
        return
    if not group.__doc__ or not getattr(group, "__dataclass_params__").frozen:  # noqa: B009 - typed
        yield f"returns {group.__name__}, which must be frozen and have a docstring"
    hints = typing.get_type_hints(group)
    taken = {option.name for option in dataclasses.fields(TypeConfig)}
    for field in dataclasses.fields(group):
        for problem in _problems_of_field(field, hints[field.name], taken):
            yield f"returns {group.__name__}: {field.name} {problem}"


def _problems_of_field(
    field: dataclasses.Field[Any], hint: Any, taken: Collection[str]
) -> Iterator[str]:
    """Yield what keeps a field from being a setting; ``taken`` are names of other options."""
    if field.name in taken:
        yield "is an option of every resource type"
    if "meaning" not in field.metadata:
        yield "must be made by `setting`"
    if hint not in _TYPES and typing.get_origin(hint) is not Literal:
        yield "has a type that no setting can have"
