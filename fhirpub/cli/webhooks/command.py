"""``fhirpub webhooks``: the tools of those who write a receiver."""

from __future__ import annotations

import click

from fhirpub.cli.webhooks.listen.command import listen
from fhirpub.cli.webhooks.trigger import trigger


@click.group()
def webhooks() -> None:
    """Develop a receiver: follow events on this machine, and send samples of them."""


webhooks.add_command(listen)
webhooks.add_command(trigger)
