"""The commands that plugins add to ``fhirpub``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.options import read_config
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import plugin_context

_OPTION = "--config"


def load_commands(words: Sequence[str], *, taken: Mapping[str, Any]) -> dict[str, click.Command]:
    """Return the commands of the plugins that the settings enable.

    Args:
        words: The command line, which may name a file of settings by ``--config``.
        taken: The commands of the service, whose names no plugin can have.

    Raises:
        ConfigurationError: The settings, or the commands of a plugin, are wrong.
    """
    config = read_config(_file_in(words))
    hooks = PluginHooks(config.plugins.enabled)
    hooks.require_no_problems()
    if not hooks.owners_of("fhirpub_commands"):
        return {}
    context = plugin_context(config, hooks)
    found: dict[str, click.Command] = {}
    for plugin, command in hooks.declared("fhirpub_commands", click.Command, context=context):
        name = command.name or ""
        if not name or name in taken or name in found:
            where = hooks.sources[plugin].where
            hooks.report(plugin, [f"{where}: the name of the command {name!r} is taken"])
        found[name] = _with_config(command)
    hooks.require_no_problems()
    return found


def _file_in(words: Sequence[str]) -> Path | None:
    """Return the file of settings that a command line names."""
    for number, word in enumerate(words):
        if word.startswith(f"{_OPTION}="):
            return Path(word.partition("=")[2])
        if word == _OPTION and number + 1 < len(words):
            return Path(words[number + 1])
    return None


def _with_config(command: click.Command) -> click.Command:
    """Let a command take ``--config``, which was read when the command was looked up."""
    if not any(_OPTION in parameter.opts for parameter in command.params):
        text = "Settings; default: fhirpub.toml in the working directory, if it exists."
        option = click.Option([_OPTION], expose_value=False, metavar="FILE", help=text)
        command.params.append(option)
    return command
