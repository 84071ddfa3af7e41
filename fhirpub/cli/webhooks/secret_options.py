"""Options of the commands for endpoints: secrets that exist already."""

from __future__ import annotations

import click

from fhirpub.cli.options import Command
from fhirpub.config.loader import variable

TOKEN_VARIABLE = "FHIRPUB_ENDPOINT_TOKEN"  # noqa: S105 - the name of a variable


def with_secret_import(command: Command) -> Command:
    """Add the option to use an existing secret to a command."""
    return click.option(
        "--import-secret",
        is_flag=True,
        help="Use an existing secret, from FHIRPUB_SIGNING_SECRET or a prompt.",
    )(command)


def with_token_import(command: Command) -> Command:
    """Add the option to use an existing token to a command."""
    return click.option(
        "--import-token",
        is_flag=True,
        help=f"Use an existing token, from {TOKEN_VARIABLE} or a prompt.",
    )(command)


def prompt_for_token() -> str:
    """Return the token of the environment, or of a prompt."""
    return variable(TOKEN_VARIABLE) or str(click.prompt("Token", hide_input=True, err=True))
