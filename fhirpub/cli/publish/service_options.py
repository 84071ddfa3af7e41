"""Options of commands that call the service as a client of a tenant."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from fhirpub.cli.options import EXISTING_FILE, Command
from fhirpub.cli.publish.service import ServiceOptions, check_cacert

_OPTIONS = (
    click.option(
        "--cacert",
        type=EXISTING_FILE,
        callback=check_cacert,
        metavar="FILE.pem",
        help="Certificates to trust, of the service or its authority, instead of the system's.",
    ),
    click.option(
        "--audience", metavar="A", help="Audience of the token; default: audience of the settings."
    ),
    click.option(
        "--url", metavar="BASE", help="URL of the service; default: base_url of the settings."
    ),
)


def with_service(command: Command) -> Command:
    """Add ``--url``, ``--audience`` and ``--cacert`` to a command, as ``service_options``."""

    @wraps(command)
    def wrapper(
        *, url: str | None, audience: str | None, cacert: Path | None, **named: Any
    ) -> Any:
        options = ServiceOptions(url=url, audience=audience, cacert=cacert)
        return command(service_options=options, **named)

    for option in _OPTIONS:
        wrapper = option(wrapper)
    return cast("Command", wrapper)
