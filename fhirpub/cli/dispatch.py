"""``fhirpub dispatch``: webhooks in processes of their own."""

from __future__ import annotations

import sys

import click

from fhirpub.app import processes
from fhirpub.cli.options import with_config
from fhirpub.config.settings import Config


@click.command(
    short_help="Send webhooks, and nothing else.",
    epilog="""\b
Examples:
  FHIRPUB_WEBHOOKS__DISPATCH_IN_SERVER=false fhirpub serve
  fhirpub dispatch --config /etc/fhirpub.toml
""",
)
@with_config
def dispatch(config: Config) -> None:
    """Relay and send webhooks until SIGTERM or Ctrl-C; then finish what is under way and exit 0.

    `fhirpub serve` does this itself, unless [webhooks] dispatch_in_server is false. As many of
    these as wanted share the endpoints. [server] base_url must be what the servers have.
    """
    sys.exit(processes.dispatch(config, announce=lambda: click.echo("fhirpub sends webhooks")))
