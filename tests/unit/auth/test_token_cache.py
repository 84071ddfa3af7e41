from __future__ import annotations

from fhirpub.auth.caller import Caller
from fhirpub.auth.jwt import Claims
from fhirpub.auth.token_cache import CachedToken, TokenCache
from fhirpub.tenant import Tenant

TENANT = Tenant.new("Lab", created=0)
VERIFIED = CachedToken(
    kid="k",
    claims=Claims(jti="j", client_id="c", tenant=TENANT.id, scopes=(), expires=1),
    caller=Caller(TENANT, "c"),
    since=0,
    until=1,
)


def test_the_token_not_used_for_longest_goes_first() -> None:
    tokens = TokenCache(3)
    for token in "abc":
        tokens.keep(token, VERIFIED)
    tokens.get("a")
    tokens.keep("b", VERIFIED)

    tokens.keep("d", VERIFIED)

    assert [tokens.get(character) is not None for character in "abcd"] == [True, True, False, True]
    assert len(tokens) == 3


def test_a_forgotten_token_is_unknown() -> None:
    tokens = TokenCache(3)
    tokens.keep("a", VERIFIED)

    tokens.forget("a")
    tokens.forget("a")

    assert tokens.get("a") is None
