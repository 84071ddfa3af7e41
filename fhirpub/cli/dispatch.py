"""``fhirpub dispatch``: send webhooks in separate processes."""

from __future__ import annotations

import sys

import click

from fhirpub.app import processes
from fhirpub.cli.options import with_config
from fhirpub.config.settings import Config


@click.command(
    short_help="Send webhooks in a separate process.",
    epilog="""\b
Examples:
  FHIRPUB_WEBHOOKS__DISPATCH_IN_SERVER=false fhirpub serve
  fhirpub dispatch --config /etc/fhirpub.toml
""",
)
@with_config
def dispatch(config: Config) -> None:
    """Relay and send webhooks until SIGTERM or Ctrl-C; then finish attempts in progress, exit 0.

    `fhirpub serve` also does this, unless [webhooks] dispatch_in_server is false. Any number of
    dispatchers share the endpoints. Their [server] base_url must be that of the servers.
    """
    sys.exit(processes.dispatch(config, announce=lambda: click.echo("fhirpub sends webhooks")))
