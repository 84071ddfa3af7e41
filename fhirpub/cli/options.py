"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fhirpub.config.loader import load
from fhirpub.config.settings import DEFAULT_FILE, Config

Command = TypeVar("Command", bound=Callable[..., Any])
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
    return load(file)
