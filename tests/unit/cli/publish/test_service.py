"""The service to publish at is that of the options, else that of the settings."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fhirpub.cli.publish.service import Service, ServiceOptions, check_cacert, service_of
from fhirpub.cli.publish.service_options import with_service
from fhirpub.config.settings import Config
from fhirpub.testing.certificate import Certificate

USUAL = ServiceOptions(url=None, audience=None, cacert=None)
CREDENTIALS = {"FHIRPUB_CLIENT_ID": "id", "FHIRPUB_CLIENT_SECRET": "secret"}
WRONG = "must look like https://fhir.example.org"


def run(options: ServiceOptions = USUAL, **variables: str) -> tuple[Service | None, Result]:
    found: list[Service] = []

    @click.command()
    def command() -> None:
        found.append(service_of(Config(), options))
        assert logging.getLogger("tornado").level == logging.CRITICAL

    result = CliRunner().invoke(command, [], env={**CREDENTIALS, **variables})
    return next(iter(found), None), result


def service(**options: Any) -> Service:
    found, result = run(replace(USUAL, **options))
    assert found, result.output
    return found


def test_everything_is_as_in_the_settings_unless_given() -> None:
    found = service()

    assert found.base == "http://127.0.0.1:8080"
    assert found.grant == {
        "client_id": "id",
        "client_secret": "secret",
        "audience": Config().auth.audience,
    }
    assert (found.cacert, found.documents_from) == (None, None)
    assert found.limit == Config().limits.request_bytes
    assert list(found.types) == ["DiagnosticReport"]


def test_options_are_stronger_than_settings() -> None:
    found = service(
        url="https://a.example/", audience="b", cacert=Path("c"), documents_from=Path("d")
    )

    assert (found.base, found.grant["audience"]) == ("https://a.example", "b")
    assert (found.cacert, found.documents_from) == (Path("c"), Path("d"))


def test_the_level_of_the_library_is_restored() -> None:
    library = logging.getLogger("tornado")
    before = library.level

    service()

    assert library.level == before


@pytest.mark.parametrize("name", ["FHIRPUB_CLIENT_ID", "FHIRPUB_CLIENT_SECRET"])
def test_without_a_terminal_both_credentials_must_be_set(name: str) -> None:
    found, result = run(USUAL, **{name: ""})

    assert (found, result.exit_code) == (None, 2)
    assert "set FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET: there is no term" in result.output


@pytest.mark.parametrize(
    "url", ["a.example", "ftp://a.example", "https:///a", "https://[a", "https://a:x"]
)
def test_a_text_that_is_no_url_is_refused(url: str) -> None:
    found, result = run(replace(USUAL, url=url))

    assert (found, result.exit_code) == (None, 2)
    assert f"--url {url}: {WRONG}" in result.output


@pytest.mark.parametrize(
    ("url", "is_noted"),
    [
        ("http://a.example", True),
        ("https://a.example", False),
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://localhost", False),
        ("http://localhost.example", True),
    ],
)
def test_a_service_elsewhere_without_tls_is_noted(url: str, *, is_noted: bool) -> None:
    _, result = run(replace(USUAL, url=url))

    note = (
        f"Note: {url} is not encrypted: others on the network can read the secret and the report\n"
    )
    assert result.stderr == note * is_noted


def test_documents_are_next_to_a_report_unless_they_have_a_folder() -> None:
    usual = service().documents(Path("a"), Path("b"))
    given = service(documents_from=Path("d")).documents(Path("a"), Path("b"))

    assert usual != given
    assert repr(usual).count("PosixPath('a')") == 1
    assert repr(usual).count("PosixPath('b')") == 1
    assert repr(given).count("PosixPath('d')") == 2


def checked(file: Path | None) -> Path | None:
    context = click.Context(click.Command("x"))
    return check_cacert(context, click.Option(["--cacert"]), file)


def test_a_file_with_a_certificate_is_taken(tmp_path: Path) -> None:
    file = Certificate.create(tmp_path, name="a").file

    assert checked(file) == file
    assert checked(None) is None


def test_a_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")

    with pytest.raises(click.BadParameter, match="has no certificate in PEM form"):
        checked(tmp_path / "c.pem")


@click.command()
@with_service
@click.option("--other")
def shown(service_options: ServiceOptions, other: str) -> None:
    click.echo(f"{service_options!r} {other}")


def test_the_options_of_a_command_become_one_value(tmp_path: Path) -> None:
    file = Certificate.create(tmp_path, name="a").file
    words = ["--url", "u", "--audience", "a", "--cacert", str(file), "--other", "o"]

    options = ServiceOptions(url="u", audience="a", cacert=file)
    assert CliRunner().invoke(shown, words).stdout == f"{options!r} o\n"
    assert CliRunner().invoke(shown, []).stdout == f"{USUAL!r} None\n"
