"""``fhirpub token``: revokes access tokens before they expire."""

from __future__ import annotations

import asyncio
import re
import sys

import click

from fhirpub.app.changes import recorded, tenant_of_client
from fhirpub.app.stores import open_store
from fhirpub.auth.revocation import MAX_REVOKED, record_revocation
from fhirpub.auth.tokens import Tokens
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_record
from fhirpub.config.settings import Config
from fhirpub.errors import NotAuthenticated, Throttled
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.client_activity_contract import RevokedToken

_JTI = re.compile(r"[A-Za-z0-9_-]{1,255}")
_MAX_BYTES = 8192
_TOO_MANY = (
    f"the client has {MAX_REVOKED} revoked tokens that have not expired, which is the limit: "
    "fhirpub client disable ends all of its tokens"
)


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
@click.option("--client", "client_id", metavar="ID", help="Client that has the token.")
@click.option("--jti", metavar="JTI", help="Claim `jti` of the token.")
@with_config
@with_json
def revoke(client_id: str | None, jti: str | None, config: Config, *, as_json: bool) -> None:
    """Revoke an access token, which is read from standard input, or named by --client and --jti.

    Running services refuse it within half a minute. The token is not an argument because other
    users of the machine can see the arguments of a command.
    """
    if (client_id is None) != (jti is None):
        raise click.UsageError("--client and --jti belong together")
    if client_id is None or jti is None:
        revoked = asyncio.run(_revoke_text(config, _read_token()))
    else:
        revoked = asyncio.run(_revoke_named(config, client_id, jti))
    record = {"client_id": revoked.client, "jti": revoked.jti, "until": instant(revoked.until)}
    print_record("Token revoked.", record, as_json=as_json)


def _read_token() -> str:
    sent = sys.stdin.buffer.read(_MAX_BYTES) if sys.stdin else b""
    text = sent.decode(errors="replace").strip()
    if not text:
        raise click.UsageError("there is no token on standard input")
    return text.removeprefix("Bearer ")


async def _revoke_text(config: Config, text: str) -> RevokedToken:
    async with open_store(config) as store:
        tokens = Tokens(
            access=store,
            config=config.auth,
            limits=config.limits,
            issuer=config.issuer,
            clock=now_ms,
        )
        try:
            async with recorded(config, store, "token.revoke") as doing:
                revoked = await tokens.revoke_for_operator(text)
                doing.tenant = await tenant_of_client(store, revoked.client)
                doing.name("Client", revoked.client)
                return revoked
        except NotAuthenticated as problem:
            said = f"this is no valid token of the service ({problem.reason}): nothing to revoke"
            raise click.ClickException(said) from None
        except Throttled:
            raise click.ClickException(_TOO_MANY) from None


async def _revoke_named(config: Config, client_id: str, jti: str) -> RevokedToken:
    if _JTI.fullmatch(jti) is None:
        raise click.BadParameter("must be the claim of a token", param_hint="--jti")
    # Nothing shows when the token expires: the latest moment is that of one issued just now.
    seconds = config.auth.token_seconds + config.auth.leeway_seconds
    token = RevokedToken(client_id, jti, now_ms() + seconds * 1000)
    async with open_store(config) as store:
        tenant = await tenant_of_client(store, client_id)
        what = ("Client", client_id)
        try:
            async with recorded(config, store, "token.revoke", what, tenant=tenant):
                await record_revocation(store, token, clock=now_ms)
        except Throttled:
            raise click.ClickException(_TOO_MANY) from None
    return token
