"""``fhirpub console``: sign in to the console with a private key."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import orjson
from tornado.httpclient import HTTPClientError, HTTPResponse

from fhirpub.auth.assertions.signing import sign_assertion
from fhirpub.auth.assertions.verification import TYPE as ASSERTION_TYPE
from fhirpub.cli.http_client import Call, http_client, json_of, send
from fhirpub.cli.options import EXISTING_FILE, with_json
from fhirpub.cli.printing import print_json
from fhirpub.cli.publish.connection_problems import explain
from fhirpub.cli.publish.service import check_cacert
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.clock import now_ms

_LINKS = {"client": "/console/links", "operator": "/console/links/operators"}


@click.group()
def console() -> None:
    """Sign in to the console of a service, the pages below /console."""


@console.command(
    epilog="""\b
Examples:
  fhirpub console login --url https://fhir.example.org --client-id 0b7e… --key private.jwk.json
  fhirpub console login --url https://fhir.example.org --operator ana --key ana.key.json
"""
)
@click.option(
    "--url", required=True, metavar="URL", help="The console, as the browser names it: its origin."
)
@click.option("--client-id", metavar="ID", help="Sign in for this client, as a person of it.")
@click.option("--operator", metavar="NAME", help="Sign in as this caller of [admin].")
@click.option(
    "--key",
    "file",
    required=True,
    type=EXISTING_FILE,
    metavar="FILE",
    help="The private key, a JWK with a kid; the service has the public one.",
)
@click.option(
    "--cacert",
    type=EXISTING_FILE,
    callback=check_cacert,
    metavar="FILE",
    help="Certificates to trust, in PEM form, instead of those of the system.",
)
@click.option("--no-browser", is_flag=True, help="Print the link, but do not open it.")
@with_json
def login(  # noqa: PLR0913 - each is an option
    *,
    url: str,
    client_id: str | None,
    operator: str | None,
    file: Path,
    cacert: Path | None,
    no_browser: bool,
    as_json: bool,
) -> None:
    """Get a link that signs in to the console, once and within two minutes, and open it.

    A client needs a private key for this (private_key_jwt). Its secret does not get a link: a
    person without a private key signs in with a passkey.
    """
    if (client_id is None) == (operator is None):
        raise click.UsageError("give one of --client-id and --operator")
    kind = "client" if client_id else "operator"
    place = f"{_base(url)}{_LINKS[kind]}"
    assertion = _sign(file, client_id or operator or "", place)
    link = asyncio.run(_ask(place, assertion, cacert))
    if as_json:
        print_json(link)
    else:
        click.echo(link["url"])
        click.echo(f"The link works once, for {link['expires_in']} seconds.", err=True)
    if not no_browser:
        webbrowser.open(link["url"])


def _base(url: str) -> str:
    """Return the origin of the console, and what may be before its path."""
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise click.BadParameter(
            f"{url} is no URL such as https://fhir.example.org", param_hint="--url"
        )
    return url.rstrip("/").removesuffix("/console")


def _sign(file: Path, subject: str, place: str) -> str:
    """Return an assertion for an address. Raises ConfigurationError."""
    try:
        key = orjson.loads(file.read_bytes())
        return sign_assertion(key, subject=subject, audience=place, clock=now_ms)
    except OSError as problem:
        raise ConfigurationError(f"--key: cannot read {file}: {problem.strerror}") from None
    except orjson.JSONDecodeError:
        raise ConfigurationError(f"--key: {file} is no JSON") from None
    except ConfigurationError as problem:
        raise ConfigurationError(f"--key: {file} {problem}") from None


async def _ask(place: str, assertion: str, cacert: Path | None) -> Mapping[str, Any]:
    """Return the link that an assertion gets. Raises ConfigurationError, ClickException."""
    fields = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    async with http_client(cacert) as client:
        try:
            answer = await send(client, Call.form(place, fields))
        except (OSError, HTTPClientError) as problem:
            raise click.ClickException(explain(problem, place).text) from None
    if answer.code != HTTPStatus.OK or "url" not in json_of(answer):
        raise click.ClickException(_refusal(answer, place))
    return json_of(answer)


def _refusal(answer: HTTPResponse, place: str) -> str:
    reason = json_of(answer).get("error_description")
    if reason:
        return f"the service gives no link: {reason}"
    if answer.code == HTTPStatus.NOT_FOUND:
        return f"there is no console at {place}: is --url right, and [console] enabled?"
    return f"{place} answers with HTTP status {answer.code}: is --url right?"
