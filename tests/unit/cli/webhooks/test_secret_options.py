"""Secrets that exist are taken from the environment, or asked for without being shown."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from fhirpub.cli.webhooks.secret_options import (
    prompt_for_token,
    with_secret_import,
    with_token_import,
)


@click.command()
@with_secret_import
@with_token_import
def shown(*, import_secret: bool, import_token: bool) -> None:
    click.echo(f"{import_secret} {import_token} {prompt_for_token()}")


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ([], "False False"),
        (["--import-secret"], "True False"),
        (["--import-token"], "False True"),
    ],
)
def test_nothing_is_imported_unless_asked(words: list[str], flags: str) -> None:
    result = CliRunner().invoke(shown, words, env={"FHIRPUB_ENDPOINT_TOKEN": "t"})

    assert result.stdout == f"{flags} t\n"


def test_a_token_is_asked_for_on_standard_error_without_being_shown() -> None:
    result = CliRunner().invoke(shown, [], input="hidden\n", env={"FHIRPUB_ENDPOINT_TOKEN": ""})

    assert result.stdout == "False False hidden\n"
    assert result.stderr == "Token: \n"
