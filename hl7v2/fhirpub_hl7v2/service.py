"""The service to publish at, by the options that both commands have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from fhirpub.cli.options import EXISTING_FILE, with_config
from fhirpub.cli.publish.bulk.connections import connections
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.cli.publish.retries import PAUSES
from fhirpub.cli.publish.service import (
    Service,
    ServiceOptions,
    check_cacert,
    note,
    service_of,
)
from fhirpub.config.settings import Config

Command = TypeVar("Command", bound=Callable[..., Any])


_OPTIONS = (
    click.option(
        "--mapping",
        type=EXISTING_FILE,
        metavar="FILE.toml",
        help="Settings of the mapping, such as the time zone and the systems of identifiers.",
    ),
    click.option(
        "--url", metavar="BASE", help="URL of the service; default: base_url of the settings."
    ),
    click.option(
        "--audience", metavar="A", help="Audience of the token; default: that of the settings."
    ),
    click.option(
        "--cacert",
        type=EXISTING_FILE,
        callback=check_cacert,
        metavar="FILE.pem",
        help="Certificates to trust, of the service or its authority, instead of the system's.",
    ),
    with_config,
)


def with_service(command: Command) -> Command:
    """Add the options about the service, and about the mapping, to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def named_service(
    config: Config, url: str | None, audience: str | None, cacert: Path | None
) -> Service:
    """Return the service that the options name; prompts for missing credentials."""
    options = ServiceOptions(url=url, audience=audience, cacert=cacert, documents_from=None)
    return service_of(config, options)


@asynccontextmanager
async def open_publisher(
    service: Service, jobs: int = 1, pauses: Callable[[], Iterable[float]] = lambda: PAUSES
) -> AsyncIterator[Publisher]:
    """Open a client of the service, with at most ``jobs`` connections.

    ``pauses`` makes the pauses before a request is sent again.
    """
    async with connections(jobs, service.cacert) as opened:
        yield Publisher(opened.send, service.base, service.grant, note, pauses)
