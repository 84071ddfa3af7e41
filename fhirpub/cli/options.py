"""The options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fhirpub.config.settings import DEFAULT_FILE, Config, load

Command = TypeVar("Command", bound=Callable[..., Any])


def with_config_file(command: Command) -> Command:
    """Give a command the option ``--config`` as ``config_file``, unread."""
    return _config_option("config_file")(command)


def with_config(command: Command) -> Command:
    """Give a command the option ``--config`` as ``config``, read and checked."""
    return _config_option("config", callback=_read)(command)


def with_json(command: Command) -> Command:
    """Give a command the option ``--json`` as ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on standard output."
    )(command)


def _config_option(name: str, **settings: Any) -> Callable[[Command], Command]:
    return click.option(
        "--config",
        name,
        type=click.Path(path_type=Path, readable=False),  # the reader says why it cannot be read
        metavar="FILE",
        help=f"Settings; without it {DEFAULT_FILE} in the working directory, if there is one.",
        **settings,
    )


def _read(_context: click.Context, _option: click.Parameter, file: Path | None) -> Config:
    return load(file)
