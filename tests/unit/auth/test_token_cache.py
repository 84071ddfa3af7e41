from __future__ import annotations

from dataclasses import replace

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


def test_the_tokens_of_one_client_are_forgotten_and_those_of_others_kept() -> None:
    tokens = TokenCache(3)
    other = replace(VERIFIED, caller=Caller(TENANT, "other"))
    for token, verified in (("a", VERIFIED), ("b", other), ("c", VERIFIED)):
        tokens.keep(token, verified)

    tokens.forget_client("c")

    assert [tokens.get(token) for token in "abc"] == [None, other, None]
