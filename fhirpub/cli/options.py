"""Options that commands share."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from fhirpub.config.loader import load
from fhirpub.config.settings import DEFAULT_FILE, Config

Command = TypeVar("Command", bound=Callable[..., Any])
_MOST_TEXT = 500
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def with_config_file(command: Command) -> Command:
    """Add the option ``--config`` to a command: the path, as ``config_file``."""
    return _config_option("config_file")(command)


def with_config(command: Command) -> Command:
    """Add the option ``--config`` to a command: the checked settings, as ``config``."""
    return _config_option("config", callback=_read)(command)


def with_json(command: Command) -> Command:
    """Add the option ``--json`` to a command, as ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print only JSON on standard output."
    )(command)


def with_note(command: Command) -> Command:
    """Add the options ``--reason`` and ``--operator``: why something is done, and who decided."""
    reason = click.option(
        "--reason",
        required=True,
        metavar="TEXT",
        callback=_text,
        help="Why, for the log and the store; no name or number of a patient.",
    )
    operator = click.option(
        "--operator",
        default=getpass.getuser,
        metavar="TEXT",
        callback=_text,
        help="Who decided it; default: the user who runs the command.",
    )
    return reason(operator(command))


def _text(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Return a text without blanks around it; refuse one that no log line can hold."""
    if not text.strip() or not text.isprintable() or len(text) > _MOST_TEXT:
        raise click.BadParameter(
            f"must be one line of printable text, not blank, of {_MOST_TEXT} characters at most"
        )
    return text.strip()


def _config_option(name: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(
        "--config",
        name,
        type=click.Path(path_type=Path, readable=False),  # the reader reports why not
        metavar="FILE",
        help=f"Settings; default: {DEFAULT_FILE} in the working directory, if it exists.",
        **settings,
    )


def _read(_context: click.Context, _option: click.Parameter, file: Path | None) -> Config:
    return read_config(file)


def read_config(file: Path | None) -> Config:
    """Return the settings, those of plugins included. Raises ConfigurationError, PluginError."""
    return load(file, plugin_groups=plugin_groups)


def plugin_groups(names: Sequence[str]) -> Mapping[str, type[Any]]:
    """Return the classes of the settings of some plugins. Raises PluginError."""
    if not names:
        return {}
    # Most commands do without plugins, and load in half the time.
    from fhirpub.plugin_host.settings import setting_groups  # noqa: PLC0415

    return setting_groups(names)
