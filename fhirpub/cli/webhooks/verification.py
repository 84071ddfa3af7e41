"""``fhirpub endpoint verify``: check the signature of a delivery."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import BinaryIO

import click

from fhirpub.cli.options import with_json
from fhirpub.cli.printing import print_record
from fhirpub.config.loader import variable
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks.transport.signing import BadSecret, NotVerified
from fhirpub.webhooks.transport.signing import verify as verified

SECRET_VARIABLE = "FHIRPUB_SIGNING_SECRET"  # noqa: S105 - the name of a variable


@click.command(
    epilog="""\b
Examples:
  fhirpub endpoint verify --headers headers.txt --body body.bin
  curl … | fhirpub endpoint verify --header "webhook-id: evt_…" --header "webhook-timestamp: …" \\
      --header "webhook-signature: v1,…"

\b
The file has one header per line, as written by curl -D and most logs. The secret comes from
FHIRPUB_SIGNING_SECRET or from a prompt; during a rotation, separate several secrets by blanks.
"""
)
@click.option(
    "--headers",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Headers of the request, as received.",
)
@click.option(
    "--header", "lines", multiple=True, metavar="'NAME: VALUE'", help="A header; may be repeated."
)
@click.option(
    "--body",
    type=click.File("rb"),
    default="-",
    metavar="FILE",
    help="Body of the request, byte for byte; default: standard input.",
)
@click.option(
    "--at",
    type=float,
    metavar="SECONDS",
    help="Time of the receiver, in seconds since 1970; default: the clock of this machine.",
)
@with_json
def verify(
    file: Path | None, lines: tuple[str, ...], body: BinaryIO, at: float | None, *, as_json: bool
) -> None:
    """Check that a delivery is authentic; otherwise print the reason, with exit status 1."""
    text = file.read_text(encoding="latin-1").splitlines() if file else []
    headers = _headers([*text, *lines])
    now = now_ms() / 1000 if at is None else at
    if not math.isfinite(now):
        raise click.BadParameter("must be a number of seconds", param_hint="--at")
    reason, sentence = "", "the delivery is authentic"
    try:
        verified(headers, body.read(), read_secret().split(), now=now)
    except BadSecret as problem:
        raise click.ClickException(str(problem)) from None
    except NotVerified as problem:
        reason, sentence = problem.reason, str(problem)
    record = {
        "verified": not reason,
        "reason": reason,
        "explanation": sentence,
        "seconds_behind_clock": _behind(headers, now),
    }
    print_record("Verified." if not reason else "Not verified.", record, as_json=as_json)
    sys.exit(bool(reason))


def read_secret() -> str:
    """Return a signing secret from the environment or from a hidden prompt."""
    return variable(SECRET_VARIABLE) or str(
        click.prompt("Signing secret", hide_input=True, err=True)
    )


def _headers(lines: list[str]) -> dict[str, str]:
    """Parse headers; skip other lines, such as the request line."""
    pairs = [line.lstrip("<> ").partition(":") for line in lines]
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _behind(headers: dict[str, str], now: float) -> int | None:
    """Return the age of the delivery in seconds, or None if it has no timestamp."""
    text = headers.get("webhook-timestamp", "")
    return round(now - int(text)) if text.isdecimal() and len(text) <= 12 else None
