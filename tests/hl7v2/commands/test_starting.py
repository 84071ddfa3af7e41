"""How the commands begin: the service that they publish at, and what a listener listens on."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import click
import pytest
import structlog
from click.testing import CliRunner

from fhirpub.cli.publish.service import Service
from fhirpub.config.settings import Config
from fhirpub.testing.certificate import Certificate
from fhirpub_hl7v2.__main__ import main
from fhirpub_hl7v2.listening import _tls
from fhirpub_hl7v2.service import named_service
from tests.unit.runtime.conftest import log_as_before

__all__ = ["log_as_before"]
CREDENTIALS = {"FHIRPUB_CLIENT_ID": "id", "FHIRPUB_CLIENT_SECRET": "secret"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Certificate.create(tmp_path_factory.mktemp("tls"), name="127.0.0.1").file


def service(url: str | None, audience: str | None, cacert: Path | None) -> Service:
    found: list[Service] = []
    command = click.command("x")(
        lambda: found.append(named_service(Config(), url, audience, cacert))
    )
    result = CliRunner().invoke(command, [], env=CREDENTIALS)
    assert found, result.output
    return found[0]


def test_the_options_name_the_service(certificate: Path) -> None:
    made = service("https://fhir.example.org", "urn:service", certificate)

    assert (made.base, made.cacert) == ("https://fhir.example.org", certificate)
    assert made.grant == {"client_id": "id", "client_secret": "secret", "audience": "urn:service"}


def test_without_options_it_is_the_service_of_the_settings() -> None:
    made = service(None, None, None)

    assert made.base == Config().base_url
    assert made.grant["audience"] == Config().auth.audience
    assert made.cacert is None


def test_a_port_that_is_taken_is_an_error_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        done = CliRunner().invoke(main, ["listen", "--port", port], env=CREDENTIALS)

    assert done.exit_code == 1
    assert "Error: cannot listen on 127.0.0.1: " in done.stderr
    assert "listens on" not in done.stdout


def context(certificate: Path, authority: Path | None = None) -> ssl.SSLContext:
    made = _tls({"tls_cert": certificate, "tls_key": None, "tls_client_ca": authority})
    assert made is not None
    return made


def test_clients_need_a_certificate_only_if_their_authority_is_named(certificate: Path) -> None:
    assert context(certificate).verify_mode == ssl.CERT_NONE
    assert context(certificate, certificate).verify_mode == ssl.CERT_REQUIRED


def test_clients_are_trusted_by_the_authority_that_is_named_alone(certificate: Path) -> None:
    assert context(certificate).cert_store_stats()["x509"] == 0
    assert context(certificate, certificate).cert_store_stats()["x509"] == 1


def test_the_key_may_be_in_the_file_of_the_certificate_or_in_another(
    certificate: Path, tmp_path: Path
) -> None:
    whole = certificate.read_text()
    at = whole.index("-----BEGIN PRIVATE KEY-----")
    (tmp_path / "cert.pem").write_text(whole[:at])
    (tmp_path / "key.pem").write_text(whole[at:])
    files = {"tls_cert": tmp_path / "cert.pem", "tls_client_ca": None}

    assert _tls({**files, "tls_key": tmp_path / "key.pem"}) is not None
    with pytest.raises(click.UsageError, match="--tls-key"):
        _tls({**files, "tls_key": None})


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize(("form", "renderer"), [("json", "JSONRenderer"), ("text", "Console")])
def test_the_log_has_the_form_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, renderer: str
) -> None:
    (tmp_path / "fhirpub.toml").write_text(f'[logs]\nformat = "{form}"\n')
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        CliRunner().invoke(main, ["listen", "--port", port], env=CREDENTIALS)

    found = type(structlog.get_config()["processors"][-1]).__name__
    assert found.startswith(renderer)


def test_tls_before_1_2_is_refused(certificate: Path) -> None:
    assert context(certificate).minimum_version == ssl.TLSVersion.TLSv1_2
