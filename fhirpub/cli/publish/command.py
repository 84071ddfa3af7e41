"""The command ``fhirpub publish``: options, credentials, and one registration after another."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from fhirpub.cli.http_client import http_client
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import is_terminal
from fhirpub.cli.publish.outcome import EXIT_STATUS, Outcome, outcome_of
from fhirpub.cli.publish.publisher import ID_VARIABLE, SECRET_VARIABLE, NoToken, Publisher
from fhirpub.cli.publish.retries import Unreachable
from fhirpub.cli.publish.submission import Submission, Types, UnusableSubmission
from fhirpub.cli.publish.summary import print_outcome, print_summary
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.plugin_host.loader import examine

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_A_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _checked_cacert(
    _context: click.Context, _option: click.Parameter, file: Path | None
) -> Path | None:
    try:
        if file:
            ssl.create_default_context(cafile=file)
    except ssl.SSLError as problem:
        raise click.BadParameter(f"{file} has no certificate in PEM form") from problem
    return file


@click.command(
    short_help="Publish reports from a shell.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.

\b
Examples:
  fhirpub publish report.json
  fhirpub publish report.json --document blood-count.pdf --url https://fhir.example.org
  fhirpub publish reports/*.json --cacert authority.pem --url https://fhir.example.org
  generate-report | fhirpub publish - --json

\b
Exit status, of several files the highest:
  0  published, now or by an earlier run with the same content
  1  refused, or not sent: the service could not be reached, or gave no token
  2  wrong usage
  3  the identifier is published with OTHER content: what you sent was not stored
""",
)
@click.argument(
    "files",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE.json...",
    nargs=-1,
    required=True,
)
@click.option(
    "--document",
    "documents",
    multiple=True,
    type=_A_FILE,
    metavar="FILE.pdf",
    help="Document to attach in presentedForm, with its hash and date; may be repeated.",
)
@click.option(
    "--url", metavar="BASE", help="URL of the service; default: base_url of the settings."
)
@click.option(
    "--audience", metavar="A", help="Audience of the token; default: audience of the settings."
)
@click.option(
    "--cacert",
    type=_A_FILE,
    callback=_checked_cacert,
    metavar="FILE.pem",
    help="Certificates to trust, of the service or its authority, instead of the system's.",
)
@with_config
@with_json
def publish(  # noqa: PLR0913 - the options of a command
    files: Sequence[str],
    documents: tuple[Path, ...],
    url: str | None,
    audience: str | None,
    cacert: Path | None,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Publish reports: FILE.json is a Parameters resource, the body of $register; - is stdin.

    The command is safe to repeat: a report is published once for each identifier. Other content
    under an identifier that is in use is not stored, and reported.
    """
    if documents and len(files) > 1:
        raise click.UsageError("--document belongs to one FILE.json")
    logging.getLogger("tornado").setLevel(logging.CRITICAL)  # what it logs is reported in words
    base = (url or config.base_url).rstrip("/")
    _warn_of_plain_http(base)
    grant = {**_credentials(), "audience": audience or config.auth.audience}

    types = examine(config.plugins.enabled).types
    service = _Service(base, grant, cacert, types)
    publishing = _publish(service, files, documents, as_json=as_json)
    outcomes = asyncio.run(publishing)
    if not as_json and (len(files) > 1 or outcomes[0].id):
        print_summary(outcomes)
    click.get_current_context().exit(max(EXIT_STATUS[outcome.result] for outcome in outcomes))


@dataclass(frozen=True, slots=True)
class _Service:
    """The address to publish at, the credentials, the certificates to trust, and known types."""

    base: str
    grant: Mapping[str, str]
    cacert: Path | None
    types: Types


async def _publish(
    service: _Service, files: Sequence[str], documents: Sequence[Path], *, as_json: bool
) -> list[Outcome]:
    """Register one file after another, and print what became of each."""
    outcomes: list[Outcome] = []
    async with http_client(service.cacert) as client:
        publisher = Publisher(client, service.base, service.grant, _note)
        try:
            for file in files:
                outcome = await _publish_file(publisher, file, documents, service.types)
                print_outcome(outcome, as_json=as_json, is_only=len(files) == 1)
                outcomes.append(outcome)
        except (NoToken, Unreachable) as problem:  # the others would fail in the same way
            problem.show()
            rest = files[len(outcomes) :]
            outcomes += [Outcome(file=file, result="not sent") for file in rest]
    return outcomes


async def _publish_file(
    publisher: Publisher, file: str, documents: Sequence[Path], types: Types
) -> Outcome:
    try:
        with click.open_file(file, "rb") as stream:
            submission = Submission.from_json(stream.read(), types)
        submission.attach(documents)
    except UnusableSubmission as problem:
        return Outcome(file=file, result="not sent", reason=str(problem))
    return outcome_of(await publisher.register(submission), file, submission.type_name)


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
        _note(f"{base} is not encrypted: others on the network can read the secret and the report")


def _note(text: str) -> None:
    click.echo(f"Note: {text}", err=True)
