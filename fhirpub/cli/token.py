"""``fhirpub token``: revokes access tokens before they expire."""

from __future__ import annotations

import sys

import click

from fhirpub.administration import keys
from fhirpub.cli.administration.target import Target, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import print_record

_MAX_BYTES = 8192


@click.group()
def token() -> None:
    """Revoke access tokens."""


@token.command(
    epilog="""\b
Examples:
  fhirpub token revoke < token.txt
  fhirpub token revoke --client 0b7e… --jti 5pPz…   as the line "token granted" of the log has it
"""
)
@click.option("--client", "client_id", metavar="CLIENT", help="Client that has the token.")
@click.option("--jti", metavar="JTI", help="Claim `jti` of the token.")
@with_target
@with_json
def revoke(client_id: str | None, jti: str | None, target: Target, *, as_json: bool) -> None:
    """Revoke an access token, which is read from standard input, or named by --client and --jti.

    Running services refuse it within half a minute. The token is not an argument because other
    users of the machine can see the arguments of a command. A token that is revoked stays so.
    """
    if (client_id is None) != (jti is None):
        raise click.UsageError("--client and --jti belong together")
    token = _read_token() if client_id is None else None
    revoked = target.call(keys.REVOKE, token=token, client=client_id, jti=jti)
    print_record("Token revoked.", revoked, as_json=as_json)


def _read_token() -> str:
    sent = sys.stdin.buffer.read(_MAX_BYTES) if sys.stdin else b""
    text = sent.decode(errors="replace").strip()
    if not text:
        raise click.UsageError("there is no token on standard input")
    return text.removeprefix("Bearer ")
