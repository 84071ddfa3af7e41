"""Operations on signing keys and on the access tokens that they sign."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fhirpub.administration.changes import tenant_of_client
from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.auth import keys as key_ring
from fhirpub.auth.revocation import MAX_REVOKED, record_revocation
from fhirpub.auth.tokens import Tokens
from fhirpub.errors import InvalidContent, Issue, NotAuthenticated, NotPossible, Throttled
from fhirpub.fhir.times import instant
from fhirpub.problems import OperationProblem
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import SigningKey

_JTI = re.compile(r"[A-Za-z0-9_-]{1,255}")
_TOO_MANY = (
    f"the client has {MAX_REVOKED} revoked tokens that have not expired, which is the limit: "
    "fhirpub client disable ends all of its tokens"
)


async def list_(administration: Administration) -> list[Mapping[str, Any]]:
    """List the keys of this environment."""
    environment = administration.config.auth.environment
    return [_record(key) for key in await administration.store.signing_keys(environment)]


async def rotate(administration: Administration) -> Mapping[str, Any]:
    """Create a new signing key."""
    async with administration.recorded("key.rotate") as doing:
        new = await key_ring.rotate(
            administration.store, administration.config.auth, clock=administration.clock
        )
        doing.name("Key", new.kid)
    return _record(new)


async def revoke_token(
    administration: Administration,
    *,
    token: str | None = None,
    client: str | None = None,
    jti: str | None = None,
) -> Mapping[str, Any]:
    """Revoke an access token. Raises InvalidContent, NotPossible."""
    try:
        if token is not None and client is None and jti is None:
            revoked = await _revoke_text(administration, token)
        elif client is not None and jti is not None and token is None:
            revoked = await _revoke_named(administration, client, jti)
        else:
            rule = "must be given, or else both client and jti"
            raise InvalidContent([Issue.error(OperationProblem.FIELD_REQUIRED, rule, "token")])
    except Throttled:
        raise NotPossible(_TOO_MANY) from None
    return {"client_id": revoked.client, "jti": revoked.jti, "until": instant(revoked.until)}


async def _revoke_text(administration: Administration, text: str) -> RevokedToken:
    config, store = administration.config, administration.store
    tokens = Tokens(
        access=store,
        config=config.auth,
        limits=config.limits,
        issuer=config.issuer,
        clock=administration.clock,
    )
    try:
        async with administration.recorded("token.revoke") as doing:
            revoked = await tokens.revoke_for_operator(text)
            doing.tenant = await tenant_of_client(store, revoked.client)
            doing.name("Client", revoked.client)
            return revoked
    except NotAuthenticated as problem:
        rule = f"this is no valid token of the service ({problem.reason}): nothing to revoke"
        raise NotPossible(rule) from None


async def _revoke_named(administration: Administration, client: str, jti: str) -> RevokedToken:
    found, config = await administration.client(client), administration.config.auth
    # Nothing shows when the token expires: the latest moment is that of one issued just now.
    seconds = key_ring.longest_token_seconds(config) + config.leeway_seconds
    token = RevokedToken(found.id, jti, administration.clock() + seconds * 1000)
    what = ("Client", found.id)
    async with administration.recorded("token.revoke", what, tenant=found.tenant):
        await record_revocation(administration.store, token, clock=administration.clock)
    return token


def _why_no_jti(text: str) -> str:
    return "" if _JTI.fullmatch(text) else "must be the claim of a token"


def _record(key: SigningKey) -> Mapping[str, Any]:
    return {
        "kid": key.kid,
        "algorithm": key.algorithm,
        "environment": key.environment,
        "created": instant(key.created),
        "retired": None if key.retired is None else instant(key.retired),
    }


LIST = Operation(
    command="keys list",
    method="GET",
    path="/keys",
    summary="List the signing keys of this environment, oldest first",
    run=list_,
)
ROTATE = Operation(
    command="keys rotate",
    method="POST",
    path="/keys/rotate",
    summary="Create a new signing key; tokens of the previous one stay valid until they expire",
    run=rotate,
    action="key.rotate",
)
REVOKE = Operation(
    command="token revoke",
    method="POST",
    path="/tokens/revoke",
    summary="Revoke an access token for good; services refuse it within half a minute",
    run=revoke_token,
    parameters=(
        Parameter(name="token", text="The token.", max_length=8_192),
        Parameter(name="client", text="The client that has the token: its id or name."),
        Parameter(name="jti", text="The claim `jti` of the token.", rule=_why_no_jti),
    ),
    is_final=True,
)
OPERATIONS = (LIST, ROTATE, REVOKE)
