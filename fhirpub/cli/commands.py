"""The command ``fhirpub``: its subcommands, its main help page and its error messages."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import click

from fhirpub import __version__
from fhirpub.cli.error_hints import explain
from fhirpub.config.loader import variable
from fhirpub.errors import FhirpubError, NoSuchRecord, SecretsUnavailable, StoreUnavailable
from fhirpub.runtime import logging as logs

_GROUPS = {
    "tenant": "tenant",
    "client": "client",
    "endpoint": "endpoint",
    "delivery": "deliveries",
}
"""The command group that manages each kind of record."""


COMMANDS = {
    "serve": "fhirpub.cli.serve:serve",
    "dispatch": "fhirpub.cli.dispatch:dispatch",
    "demo": "fhirpub.cli.demo.command:demo",
    "publish": "fhirpub.cli.publish.command:publish",
    "sample": "fhirpub.cli.sample.command:sample",
    "tenant": "fhirpub.cli.tenant:tenant",
    "client": "fhirpub.cli.client:client",
    "token": "fhirpub.cli.token:token",
    "quota": "fhirpub.cli.quota.command:quota",
    "endpoint": "fhirpub.cli.webhooks.endpoint:endpoint",
    "deliveries": "fhirpub.cli.webhooks.deliveries:deliveries",
    "webhooks": "fhirpub.cli.webhooks.command:webhooks",
    "patient": "fhirpub.cli.patient.command:patient",
    "erase": "fhirpub.cli.erasure.erase:erase",
    "hold": "fhirpub.cli.erasure.hold:hold",
    "restore": "fhirpub.cli.erasure.restore:restore",
    "keys": "fhirpub.cli.keys:keys",
    "secrets": "fhirpub.cli.encryption.command:secrets",
    "admin": "fhirpub.cli.administration.command:admin",
    "console": "fhirpub.cli.console:console",
    "audit": "fhirpub.cli.audit.command:audit",
    "check": "fhirpub.cli.check:check",
    "transfer": "fhirpub.cli.transfer:transfer",
    "plugins": "fhirpub.cli.settings:plugins",
    "plugin": "fhirpub.cli.plugin:plugin",
    "config": "fhirpub.cli.settings:config",
}
"""Where each command is, in the order in which a new operator needs them. Only the one that runs
is imported: what some of them need takes most of a second."""

ALIASES = {"migrate": "transfer"}
"""Older names of commands that operators' scripts still use; help does not list them."""


class Reporting(click.Group):
    """A group that reports a refusal in one line on standard error, with exit status 1.

    ``places`` name the module and the variable of each command that is imported when needed.
    """

    def __init__(
        self, *arguments: Any, places: Mapping[str, str] | None = None, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._places = places or {}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its current or its older name."""
        name = ALIASES.get(cmd_name, cmd_name)
        if self._places and name not in self.commands:
            if name in self._places:
                module, _, variable_name = self._places[name].partition(":")
                self.add_command(getattr(import_module(module), variable_name), name)
            else:
                self._add_commands_of_plugins()
            gc.enable()  # off while this is loaded, by `fhirpub.__main__`
        return super().get_command(ctx, name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands; without those of plugins if settings are wrong."""
        if self._places:
            with suppress(click.ClickException):
                self._add_commands_of_plugins()
        return [*dict.fromkeys([*self._places, *self.commands])]

    def _add_commands_of_plugins(self) -> None:
        """Add the commands of plugins. Raises ClickException."""
        # Imported here: most commands need no plugin, and load in half the time.
        from fhirpub.cli.plugin_commands import load_commands  # noqa: PLC0415

        try:
            found = load_commands(sys.argv, taken={**self._places, **ALIASES})
        except FhirpubError as problem:
            raise click.ClickException(_advice(problem)) from problem
        for command in found.values():
            self.add_command(command)

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        """Parse the command line; this alone may print help."""
        with _report_full_disk():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the command line names."""
        try:
            with _report_full_disk():
                return super().invoke(ctx)
        except FhirpubError as problem:
            raise click.ClickException(_advice(problem)) from problem
        except UnicodeError as problem:
            if all(map(_is_text, sys.argv)):
                raise
            raise click.UsageError("the command line has words that are not UTF-8") from problem


@contextmanager
def _report_full_disk() -> Iterator[None]:
    """Report that output cannot be written because the disk is full."""
    try:
        yield
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        # The rest of the buffer would fail again at exit, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.ClickException("the disk is full, and the output is lost") from problem


def _is_text(word: str) -> bool:
    return os.fsencode(word).decode(errors="replace") == word


def _advice(problem: FhirpubError) -> str:
    """Return the message of a problem, with advice where there is some."""
    if isinstance(problem, NoSuchRecord):
        return f"{problem}; `fhirpub {_GROUPS[problem.kind]} list` shows the existing ones"
    if isinstance(problem, StoreUnavailable):
        return f"the store cannot be used: {explain(problem.reason)}; see [storage] url"
    return problem.reason if isinstance(problem, SecretsUnavailable) else str(problem)


@click.group(
    cls=Reporting,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 99},
    epilog="""\b
The first five minutes:
  fhirpub demo                              shows the service at work, each step as a curl command
  fhirpub tenant add "Lab Uno"              adds an organization that publishes; prints its id
  fhirpub client add --tenant ID --scope system/DiagnosticReport.cruds
                                            adds credentials; the secret is shown only once
  fhirpub serve                             runs the service on http://127.0.0.1:8080
  fhirpub publish report.json --document report.pdf

\b
Settings are read from fhirpub.toml in the working directory, or from --config FILE;
`fhirpub config` prints every setting with its default and its meaning.
Exit status: 0 done, 1 refused or misconfigured (the reason is on standard error), 2 wrong usage.
""",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def fhirpub(context: click.Context) -> None:
    """Publish diagnostic reports over FHIR R4: one call, safe to repeat, never a duplicate."""
    logs.configure(level="warning", form="text")
    for item in (sys.stdout, sys.stderr):
        if isinstance(item, io.TextIOWrapper):  # the terminal may lack characters
            item.reconfigure(errors="backslashreplace")
    if variable("NO_COLOR"):
        context.color = False
