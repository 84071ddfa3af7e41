"""Assertions that are used once and tokens that are revoked, in a file."""

from __future__ import annotations

import pytest

from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.sqlite.store import SqliteStore


async def use(store: SqliteStore, jti: str, *, owner: str = "c", until: int = 50) -> AssertionUse:
    return await store.use_assertion(UsedAssertion(owner, jti, until), now=10, most=2)


async def test_an_owner_uses_so_many_assertions_and_each_once(store: SqliteStore) -> None:
    uses = [await use(store, jti) for jti in ("a", "a", "b", "c", "a")]

    assert uses == [
        AssertionUse.FIRST,
        AssertionUse.REPEATED,
        AssertionUse.FIRST,
        AssertionUse.TOO_MANY,
        AssertionUse.TOO_MANY,
    ]
    assert await use(store, "c", owner="d") == AssertionUse.FIRST


async def test_assertions_that_have_ended_do_not_count(store: SqliteStore) -> None:
    for jti in "ab":
        assert await use(store, jti, until=10) == AssertionUse.FIRST

    assert await use(store, "c") == AssertionUse.FIRST


async def test_an_assertion_that_has_ended_and_is_not_swept_is_no_first_one_again(
    store: SqliteStore,
) -> None:
    assert await use(store, "a", until=10) == AssertionUse.FIRST

    assert await use(store, "a", until=10) == AssertionUse.REPEATED


@pytest.mark.parametrize(("before", "swept"), [(50, 0), (51, 1)])
async def test_what_has_ended_is_swept_after_its_end(
    store: SqliteStore, before: int, swept: int
) -> None:
    await use(store, "a")
    await store.revoke_token(RevokedToken("c", "a", 50), most=9)

    assert await store.sweep_used_assertions(before=before) == swept
    assert await store.sweep_revoked_tokens(before=before) == swept


async def test_a_revocation_beyond_the_limit_is_not_stored(store: SqliteStore) -> None:
    stored = [await store.revoke_token(RevokedToken("c", jti, 5), most=2) for jti in "abca"]

    assert stored == [True, True, False, True]
    assert [one.jti for one in await store.revoked_tokens("c")] == ["a", "b"]


async def test_the_later_use_of_a_client_is_kept(store: SqliteStore) -> None:
    for uses in ({"c": 5, "d": 9}, {"c": 7, "d": 8}):
        await store.put_client_uses(uses)

    assert await store.client_uses() == {"c": 7, "d": 9}
