"""Tokens with an endpoint: what is being fetched for them ends with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.tokens import Tokens
from fhirpub.plugin_api import TokenIssuer
from tests.unit.auth.assertions.signing import pair
from tests.unit.auth.conftest import ADDRESS, ISSUER, World, bearer
from tests.unit.auth.issuers.site import Silence
from tests.unit.auth.issuers.test_trust import AUDIENCE, CORP, SCOPE, identify
from tests.unit.auth.test_authentication import ES384, JWKS_URL, TOKEN_URL, Ward, make_ward

__all__ = ["make_ward"]


def tokens_of(world: World, silence: Silence, *issuers: TokenIssuer) -> Tokens:
    return Tokens(
        access=world.access,
        config=world.config,
        limits=world.limits,
        issuer=ISSUER,
        clock=world.clock,
        endpoint=TokenEndpoint(TOKEN_URL, silence.fetch, issuers),
    )


@pytest.mark.parametrize("whose", ["client", "issuer"])
async def test_what_is_being_fetched_ends_with_the_tokens(
    make_ward: Callable[..., Any], whose: str
) -> None:
    ward: Ward = await make_ward(jwks_url=JWKS_URL)
    world, silence = ward.world, Silence()
    issuer = TokenIssuer(
        name="corp",
        url=CORP,
        audience=AUDIENCE,
        tenants=(world.tenant.id,),
        scopes=(SCOPE,),
        identify=identify,
    )
    tokens = tokens_of(world, silence, issuer)
    await tokens.start()
    asking: Any
    if whose == "client":
        message = ward.message(ES384.sign(ward.claims()))
        asking = tokens.grant(message, address=ADDRESS)
    else:
        now = world.clock() // 1000
        claims = {"iss": CORP, "aud": AUDIENCE, "exp": now + 60, "iat": now}
        asking = tokens.caller(bearer(pair("ES256", "corp-1").sign(claims)))
    waiting = asyncio.create_task(asking)
    async with asyncio.timeout(60):
        await silence.asked.wait()
        await tokens.stop()

    ended = silence.ended.is_set()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert ended
