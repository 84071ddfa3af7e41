"""``fhirpub publish``: register a report from a shell."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import click
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from fhirpub.cli.http_client import FHIR_JSON, Call, http_client, json_of, send_until_answered
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import is_terminal, print_json
from fhirpub.cli.submission import Submission, UnusableSubmission
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config

_ID, _SECRET = "FHIRPUB_CLIENT_ID", "FHIRPUB_CLIENT_SECRET"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_A_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Publish a report from a shell.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.

\b
Examples:
  fhirpub publish report.json
  fhirpub publish report.json --document blood-count.pdf --url https://fhir.example.org
  generate-report | fhirpub publish - --json

\b
Exit status:
  0  published, now or by an earlier run with the same content
  1  refused, or the service could not be reached
  2  wrong usage
  3  the identifier is published with OTHER content: what you sent was not stored
""",
)
@click.argument("file", type=click.File("rb"), metavar="FILE.json")
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
@with_config
@with_json
def publish(
    file: BinaryIO,
    documents: tuple[Path, ...],
    url: str | None,
    audience: str | None,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Publish a report: FILE.json is a Parameters resource, the body of $register; - is stdin.

    The command is safe to repeat: a report is published once for each identifier. Other content
    under an identifier that is in use is not stored, and reported.
    """
    try:
        submission = Submission.from_json(file.read())
        submission.attach(documents)
    except UnusableSubmission as problem:
        raise click.ClickException(f"{file.name}: {problem}") from problem
    base = (url or config.base_url).rstrip("/")
    _warn_of_plain_http(base)
    grant = {**_credentials(), "audience": audience or config.auth.audience}
    answer = asyncio.run(_publish(base, grant, submission))
    _report(answer, submission.type_name, as_json=as_json)


async def _token(client: AsyncHTTPClient, base: str, grant: dict[str, str]) -> str:
    """Return an access token. Raises ClickException with the error of the token endpoint."""
    call = Call.form(f"{base}/oauth/token", {"grant_type": "client_credentials", **grant})
    answer = await send_until_answered(client, call, note=_note)
    told = json_of(answer)
    if answer.code == HTTPStatus.OK and isinstance(told.get("access_token"), str):
        return str(told["access_token"])
    if answer.code == HTTPStatus.UNAUTHORIZED:
        hint = f"; are {_ID} and {_SECRET} those of this service and environment?"
    else:
        hint = "; are --url and --audience right?"
    reason = told.get("error_description") or told.get("error") or answer.reason
    raise click.ClickException(f"no token: {answer.code} {reason}{hint}")


async def _publish(base: str, grant: dict[str, str], submission: Submission) -> HTTPResponse:
    async with http_client() as client:
        token = await _token(client, base, grant)
        call = Call(
            method="POST",
            url=f"{base}/fhir/r4/{submission.type_name}/$register",
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": FHIR_JSON,
                "Accept": FHIR_JSON,
            },
            body=submission.to_json(),
        )
        return await send_until_answered(client, call, note=_note)


class _OtherContent(click.ClickException):
    """The identifier is published with other content."""

    exit_code = 3

    def __init__(self, resource: str, issues: Sequence[dict[str, Any]] = ()) -> None:
        lines = [
            f"{resource} has this identifier with OTHER content: what you sent was not stored.",
            *(f"  {_line(issue)}" for issue in issues),
            "Use another identifier for another report; send a correction as an update (PATCH).",
        ]
        super().__init__("\n".join(lines))


def _report(answer: HTTPResponse, type_name: str, *, as_json: bool) -> None:
    if answer.code == HTTPStatus.CONFLICT:
        raise _OtherContent(f"a {type_name}", _issues_of(json_of(answer)))
    if answer.code != HTTPStatus.CREATED:
        raise click.ClickException(_refusal(answer))
    location = answer.headers.get("Location", "")
    address, _, version = location.partition("/_history/")
    resource_id = address.rpartition("/")[2]
    replayed = answer.headers.get("Idempotent-Replayed") == "true"
    different = answer.headers.get("Idempotent-Content") == "different"
    issues = _issues_beside(json_of(answer))
    if as_json:
        known = {"type": type_name, "id": resource_id, "version": version, "location": location}
        state = {"replayed": replayed, "different_content": different}
        print_json({**known, **state, "issues": issues})
    if different:
        raise _OtherContent(f"{type_name} {resource_id}")
    if not as_json:
        _print(f"{type_name} {resource_id} version {version}", issues, replayed=replayed)


def _print(resource: str, issues: Sequence[dict[str, Any]], *, replayed: bool) -> None:
    if replayed:  # the first issue of the first response is that the resource was created
        click.echo(f"Already published: {resource}, nothing new was stored")
        issues = issues[1:]
    else:
        click.echo(f"Published {resource}")
    for issue in issues:
        click.echo(f"  {_line(issue)}")


def _refusal(answer: HTTPResponse) -> str:
    """Return the message of a refusal, with one line per issue."""
    issues = _issues_of(json_of(answer))
    lines = [f"  {_line(issue)}" for issue in issues]
    return "\n".join([f"refused: {answer.code} {answer.reason}", *lines])


def _issues_beside(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the issues in the entry ``issues`` of a response."""
    entries = parameters.get("parameter", [])
    return [
        i
        for entry in entries
        if entry.get("name") == "issues"
        for i in _issues_of(entry.get("resource", {}))
    ]


def _issues_of(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    listed = outcome.get("issue") if outcome.get("resourceType") == "OperationOutcome" else []
    return [item for item in listed or [] if isinstance(item, dict)]


def _line(issue: dict[str, Any]) -> str:
    place = ", ".join(issue.get("expression", []))
    text = issue.get("diagnostics", "")
    told = f"{place}: {text}" if place else text
    return f"{issue.get('severity', ''):<11}  {issue.get('code', ''):<13}  {told}"


def _credentials() -> dict[str, str]:
    """Return the credentials of the environment; prompt for those that it lacks."""
    found = {"client_id": variable(_ID), "client_secret": variable(_SECRET)}
    if not all(found.values()) and not is_terminal(sys.stdin):
        raise click.UsageError(f"set {_ID} and {_SECRET}: there is no terminal for a prompt")
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
