"""The options of commands that name the store or the service on which they act."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import click

from fhirpub.administration.execution import execute
from fhirpub.administration.operation import Operation
from fhirpub.app.administration import open_administration
from fhirpub.app.stores import key_file, sqlite_file
from fhirpub.cli.administration.remote import open_remote
from fhirpub.cli.options import Command, read_config, with_config_file
from fhirpub.cli.printing import is_terminal
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError, InvalidContent

T = TypeVar("T")
_URL_VARIABLE = "FHIRPUB_ADMIN_URL"
_admin_key = click.option(
    "--admin-key",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Key for --admin-url: a private key as JWK, or the bootstrap key; default: the bootstrap "
    "key in FHIRPUB_ADMIN_KEY.",
)
_admin_url = click.option(
    "--admin-url",
    default="",
    metavar="URL",
    help=f"Act on a running service through its interface for administration; default: "
    f"{_URL_VARIABLE} if it is set, otherwise the store of the settings.",
)


class Caller(Protocol):
    """Runs operations, one after the other."""

    def __call__(self, operation: Operation, **arguments: Any) -> Awaitable[Any]:
        """Run an operation; None stands for an argument that is not given."""


class Target:
    """The store that the configuration names, or the service at a URL."""

    def __init__(self, config_file: Path | None, url: str, key: Path | None) -> None:
        self._config_file = config_file
        self._key = key
        self._url_option = url
        self.url = url or variable(_URL_VARIABLE)
        self.notes: list[str] = []
        """What an operator has to know besides the result."""

    @cached_property
    def config(self) -> Config:
        """The settings. Raises ConfigurationError."""
        return read_config(self._config_file)

    def call(self, operation: Operation, **arguments: Any) -> Any:
        """Run one operation and return its result."""
        try:
            operation.check(arguments)
        except InvalidContent as problem:
            raise click.UsageError(str(problem)) from None

        async def work(call: Caller) -> Any:
            return await call(operation, **arguments)

        return self.run(work, creates_store=operation.creates_store)

    def run(self, work: Callable[[Caller], Awaitable[T]], *, creates_store: bool = True) -> T:
        """Run several operations, on one connection."""

        async def running() -> T:
            if self.url:
                async with open_remote(self.url, self._key) as call:
                    return await work(call)
            async with self._open(creates_store=creates_store) as call:
                return await work(call)

        return asyncio.run(running())

    @asynccontextmanager
    async def _open(self, *, creates_store: bool) -> Any:
        config = self.config
        if not creates_store:
            self._require_store(config)
        key = key_file(config)
        is_new = key is not None and not key.exists()
        async with open_administration(config, create=creates_store) as administration:

            async def call(operation: Operation, **arguments: Any) -> Any:
                return await execute(operation, administration, arguments)

            yield call
        if is_new and key is not None and key.exists():
            self.notes.append(f"Created {key}, the key of the secrets in the store: keep a copy.")

    def _require_store(self, config: Config) -> None:
        """Raise ConfigurationError if there is no SQLite file: often --config was forgotten."""
        file = sqlite_file(config)
        try:
            if file is None or file.exists():
                return
        except OSError as problem:
            text = f"[storage] url: {file} cannot be opened: {problem.strerror}"
            raise ConfigurationError(text) from None
        place = f"[storage] url: there is no store at {file.absolute()}"
        if self._config_file is None:
            raise ConfigurationError(f"{place}: name the file of the settings with --config")
        raise ConfigurationError(f"{place}: correct the url, or create it by `fhirpub check`")

    def repeated(self, command: str) -> str:
        """Return a command with the options by which it acts on the same store or service."""
        words = [command]
        if self._config_file is not None:
            words.append(f"--config {shlex.quote(str(self._config_file))}")
        if self._url_option:
            words.append(f"--admin-url {shlex.quote(self._url_option)}")
        if self._key is not None:
            words.append(f"--admin-key {shlex.quote(str(self._key))}")
        return " ".join(words)


def with_target(command: Command) -> Command:
    """Add the options that name where a command acts, as ``target``."""
    return with_config_file(_with_target(_admin_url(_admin_key(command))))


def _with_target(command: Command) -> Command:
    """Replace the three options by one argument."""

    @wraps(command)
    def wrapper(
        *arguments: Any,
        config_file: Path | None,
        admin_url: str,
        admin_key: Path | None,
        **named: Any,
    ) -> Any:
        return command(*arguments, target=Target(config_file, admin_url, admin_key), **named)

    return cast("Command", wrapper)


def with_key(command: Command) -> Command:
    """Add the option ``--key``: the caller's own key of what is added."""
    return click.option(
        "--key",
        metavar="KEY",
        help="A key of your choice, such as lab-uno. It makes the command safe to repeat: what "
        "has the key is changed to what is given.",
    )(command)


def with_yes(command: Command) -> Command:
    """Add the option ``--yes`` to a command that cannot be undone."""
    return click.option("--yes", is_flag=True, help="Do not ask. This cannot be undone.")(command)


def confirm_final(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone, if a person can answer; stop at a no."""
    if not yes and is_terminal(sys.stdin) and is_terminal(sys.stderr):
        click.confirm(f"{question} This cannot be undone.", abort=True, err=True)
