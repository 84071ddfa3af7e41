"""The service to publish at is that of the options, else that of the settings."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fhirpub.cli.publish import service as module
from fhirpub.cli.publish.service import Service, ServiceOptions, check_cacert, service_of
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


@pytest.mark.parametrize("level", [logging.NOTSET, logging.ERROR])
def test_the_level_of_the_library_is_restored(level: int) -> None:
    library = logging.getLogger("tornado")
    before = library.level
    library.setLevel(level)
    try:
        service()

        assert library.level == level
    finally:
        library.setLevel(before)


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
    "url", ["https://a.example", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"]
)
def test_a_service_with_tls_or_on_this_machine_is_not_noted(url: str) -> None:
    _, result = run(replace(USUAL, url=url))

    assert result.stderr == ""


@pytest.mark.parametrize("url", ["http://a.example", "http://localhost.example"])
def test_a_service_elsewhere_without_tls_is_noted(url: str) -> None:
    _, result = run(replace(USUAL, url=url))

    assert result.stderr == (
        f"Note: {url} is not encrypted: others on the network can read the secret and the report\n"
    )


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


@pytest.mark.parametrize(
    ("variables", "typed", "grant"),
    [
        ({"FHIRPUB_CLIENT_ID": ""}, "typed\n", ("typed", "secret")),
        ({"FHIRPUB_CLIENT_SECRET": ""}, "hidden\n", ("id", "hidden")),
        (
            {"FHIRPUB_CLIENT_ID": "", "FHIRPUB_CLIENT_SECRET": ""},
            "typed\nhidden\n",
            ("typed", "hidden"),
        ),
    ],
)
def test_on_a_terminal_missing_credentials_are_asked_for_and_secrets_not_shown(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    typed: str,
    grant: tuple[str, str],
) -> None:
    monkeypatch.setattr(module, "is_terminal", lambda _stream: True)
    made: list[Service] = []
    asking = click.command("x")(lambda: made.append(service_of(Config(), USUAL)))

    result = CliRunner().invoke(asking, [], input=typed, env={**CREDENTIALS, **variables})

    assert (made[0].grant["client_id"], made[0].grant["client_secret"]) == grant
    assert "hidden" not in result.output
    assert result.stdout == ""
