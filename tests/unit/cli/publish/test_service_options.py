"""Commands that call the service take its URL, the audience and certificates to trust."""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from fhirpub.cli.publish.service import ServiceOptions
from fhirpub.cli.publish.service_options import with_service
from fhirpub.testing.certificate import Certificate


@click.command()
@click.argument("name")
@with_service
def shown(name: str, service_options: ServiceOptions) -> None:
    click.echo(f"{name} {service_options!r}")


def test_nothing_is_given_unless_named() -> None:
    options = ServiceOptions(url=None, audience=None, cacert=None)

    assert CliRunner().invoke(shown, ["x"]).stdout == f"x {options!r}\n"


def test_each_option_is_at_its_place(tmp_path: Path) -> None:
    file = Certificate.create(tmp_path, name="a").file
    words = ["x", "--url", "u", "--audience", "a", "--cacert", str(file)]

    options = ServiceOptions(url="u", audience="a", cacert=file)
    assert CliRunner().invoke(shown, words).stdout == f"x {options!r}\n"


def test_certificates_are_looked_at_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")

    result = CliRunner().invoke(shown, ["x", "--cacert", str(tmp_path / "c.pem")])

    assert result.exit_code == 2
    assert "has no certificate in PEM form" in result.output
