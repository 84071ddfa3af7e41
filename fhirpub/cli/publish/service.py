"""The service to publish at: its address, the credentials, and the types that it knows."""

from __future__ import annotations

import logging
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click

from fhirpub.cli.printing import is_terminal
from fhirpub.cli.publish.documents import Documents
from fhirpub.cli.publish.publisher import ID_VARIABLE, SECRET_VARIABLE
from fhirpub.cli.publish.submission import Types
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.plugin_host.loader import examine

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The address to publish at, the credentials, the certificates to trust, and known types.

    ``limit`` is the largest size of a report or document in bytes. ``documents_from`` is the
    folder that documents are read from, with paths relative to it; None: that of each report.
    """

    base: str
    grant: Mapping[str, str]
    cacert: Path | None
    types: Types
    limit: int
    documents_from: Path | None = None

    def documents(self, folder: Path, base: Path) -> Documents:
        """Return where the documents are that a report in ``folder`` names, below ``base``."""
        start = self.documents_from or folder
        return Documents(start, self.documents_from or base, self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """The options of the command that name the service; None: as in the settings."""

    url: str | None
    audience: str | None
    cacert: Path | None
    documents_from: Path | None = None


def service_of(config: Config, options: ServiceOptions) -> Service:
    """Return the service that the options name, else that of the settings.

    Prompts for the credentials that the environment does not have.
    """
    _silence_library()
    base = (options.url or config.base_url).rstrip("/")
    _warn_of_plain_http(base)
    grant = {**_credentials(), "audience": options.audience or config.auth.audience}
    return Service(
        base=base,
        grant=grant,
        cacert=options.cacert,
        types=examine(config.plugins.enabled).types,
        limit=config.limits.request_bytes,
        documents_from=options.documents_from,
    )


def _silence_library() -> None:
    """Let the HTTP library log nothing until the command ends: it is reported in words."""
    library = logging.getLogger("tornado")
    click.get_current_context().call_on_close(partial(library.setLevel, library.level))
    library.setLevel(logging.CRITICAL)


def _credentials() -> dict[str, str]:
    """Return the credentials of the environment; prompt for those that it lacks."""
    found = {"client_id": variable(ID_VARIABLE), "client_secret": variable(SECRET_VARIABLE)}
    if not all(found.values()) and not is_terminal(sys.stdin):
        raise click.UsageError(
            f"set {ID_VARIABLE} and {SECRET_VARIABLE}: there is no terminal for a prompt"
        )
    return {
        "client_id": found["client_id"] or click.prompt("Client id", err=True),
        "client_secret": found["client_secret"]
        or click.prompt("Client secret", hide_input=True, err=True),
    }


def _warn_of_plain_http(base: str) -> None:
    wrong = click.UsageError(f"--url {base}: must look like https://fhir.example.org")
    try:
        address = urlsplit(base)
        host, _port = (address.hostname or "").encode("idna"), address.port
    except ValueError:  # an invalid host or port
        raise wrong from None
    if address.scheme not in ("http", "https") or not host:
        raise wrong
    if address.scheme == "http" and address.hostname not in _LOOPBACK:
        note(f"{base} is not encrypted: others on the network can read the secret and the report")


def check_cacert(
    _context: click.Context, _option: click.Parameter, file: Path | None
) -> Path | None:
    """Return a file of certificates, as click's callback. Raises BadParameter if it has none."""
    try:
        if file:
            ssl.create_default_context(cafile=file)
    except ssl.SSLError as problem:
        raise click.BadParameter(f"{file} has no certificate in PEM form") from problem
    return file


def note(text: str) -> None:
    """Print a note for people on standard error."""
    click.echo(f"Note: {text}", err=True)
