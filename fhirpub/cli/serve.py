"""``fhirpub serve``: run the service."""

from __future__ import annotations

import dataclasses
import sys

import click

from fhirpub.app import processes
from fhirpub.cli.options import with_config
from fhirpub.config.settings import EMPTY_HOST, Config


@click.command(
    short_help="Run the service.",
    epilog="""\b
Examples:
  fhirpub serve
  fhirpub serve --config /etc/fhirpub.toml --workers 4
  FHIRPUB_SERVER__PORT=9000 fhirpub serve
""",
)
@click.option("--host", metavar="H", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="P", help="Port; 0: a free one.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes that serve."
)
@with_config
def serve(host: str | None, port: int | None, workers: int | None, config: Config) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish requests in progress and exit 0.

    Prints one line with the address when the service is ready. Missing parts of a SQLite store
    (its folder, its tables, a signing key) are created.
    """
    if host is not None and not host.strip():
        raise click.BadParameter(EMPTY_HOST, param_hint="--host")
    chosen = {"host": host, "port": port, "workers": workers}
    given = {name: value for name, value in chosen.items() if value is not None}
    server = dataclasses.replace(config.server, **given)  # type: ignore[arg-type]
    settings = dataclasses.replace(config, server=server)
    sys.exit(processes.serve(settings, announce=_announce))


def _announce(address: str) -> None:
    click.echo(f"fhirpub is ready at {address}")
