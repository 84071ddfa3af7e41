"""Revoked tokens, used assertions and last uses of clients, as a server keeps them."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.samples import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_revoked_tokens_are_those_of_a_client_in_the_order_of_their_ends(
    shared: MongoStore,
) -> None:
    client = new_id()
    tokens = [RevokedToken(client, jti, until) for jti, until in (("b", 1), ("a", 2), ("c", 2))]
    for token in reversed(tokens):
        assert await shared.revoke_token(token, most=9)
    await shared.revoke_token(RevokedToken(new_id(), "a", 3), most=9)

    assert await shared.revoked_tokens(client) == tokens
    assert await shared.revoked_tokens(new_id()) == []


@pytest.mark.parametrize(("again", "until"), [(7, 7), (3, 5)])
async def test_a_token_that_is_revoked_again_ends_no_earlier(
    shared: MongoStore, again: int, until: int
) -> None:
    client = new_id()
    await shared.revoke_token(RevokedToken(client, "a", 5), most=9)

    assert await shared.revoke_token(RevokedToken(client, "a", again), most=9)

    assert await shared.revoked_tokens(client) == [RevokedToken(client, "a", until)]


async def test_a_client_has_so_many_revoked_tokens(shared: MongoStore) -> None:
    client = new_id()
    first, second, third = (RevokedToken(client, jti, 5) for jti in "abc")

    assert await shared.revoke_token(first, most=2)
    assert await shared.revoke_token(second, most=2)
    assert not await shared.revoke_token(third, most=2)
    assert await shared.revoke_token(second, most=2)
    assert await shared.revoked_tokens(client) == [first, second]


async def test_revoked_tokens_are_swept_once_they_have_ended(shared: MongoStore) -> None:
    await shared.sweep_revoked_tokens(before=2**53)
    client = new_id()
    tokens = [RevokedToken(client, jti, until) for jti, until in (("a", 4), ("b", 5), ("c", 6))]
    for token in tokens:
        await shared.revoke_token(token, most=9)

    assert await shared.sweep_revoked_tokens(before=5) == 1
    assert await shared.revoked_tokens(client) == tokens[1:]


async def test_an_assertion_is_used_once_by_its_owner(shared: MongoStore) -> None:
    owner, other = new_id(), new_id()

    async def use(owner: str, jti: str) -> AssertionUse:
        used = UsedAssertion(owner=owner, jti=jti, until=100)
        return await shared.use_assertion(used, now=1, most=9)

    assert await use(owner, "a") is AssertionUse.FIRST
    assert await use(owner, "a") is AssertionUse.REPEATED
    assert await use(owner, "b") is AssertionUse.FIRST
    assert await use(other, "a") is AssertionUse.FIRST
    at_once = await asyncio.gather(*(use(owner, "c") for _ in range(5)))
    assert at_once.count(AssertionUse.FIRST) == 1
    assert at_once.count(AssertionUse.REPEATED) == 4


async def test_an_owner_uses_so_many_assertions_until_some_have_ended(
    shared: MongoStore,
) -> None:
    owner = new_id()

    async def use(jti: str, *, now: int) -> AssertionUse:
        used = UsedAssertion(owner=owner, jti=jti, until=now + 10)
        return await shared.use_assertion(used, now=now, most=2)

    assert await use("a", now=1) is AssertionUse.FIRST
    assert await use("b", now=2) is AssertionUse.FIRST
    assert await use("c", now=10) is AssertionUse.TOO_MANY
    assert await use("c", now=11) is AssertionUse.FIRST
    assert await use("d", now=11) is AssertionUse.TOO_MANY


async def test_used_assertions_are_swept_once_they_have_ended(shared: MongoStore) -> None:
    await shared.sweep_used_assertions(before=2**53)
    owner = new_id()
    for jti, until in (("a", 4), ("b", 5)):
        used = UsedAssertion(owner=owner, jti=jti, until=until)
        await shared.use_assertion(used, now=1, most=9)

    assert await shared.sweep_used_assertions(before=5) == 1
    again = UsedAssertion(owner=owner, jti="b", until=5)
    assert await shared.use_assertion(again, now=1, most=9) is AssertionUse.REPEATED


async def test_the_last_use_of_a_client_never_goes_back(shared: MongoStore) -> None:
    one, other = new_id(), new_id()

    await shared.put_client_uses({one: 7, other: 3})
    await shared.put_client_uses({one: 5, other: 9})
    await shared.put_client_uses({})

    uses = await shared.client_uses()
    assert (uses[one], uses[other]) == (7, 9)


async def test_used_assertions_are_listed_behind_a_place_in_the_order_of_owner_and_id(
    shared: MongoStore,
) -> None:
    first, second = sorted([new_id(), new_id()])
    used = [UsedAssertion(owner, jti, 100) for owner in (first, second) for jti in ("B", "a", "z")]
    await shared.put_used_assertions(used[::-1])

    async def behind(jti: str) -> list[UsedAssertion]:
        found = await shared.used_assertions(after=(first, jti), limit=10_000)
        return [one for one in found if one.owner in (first, second)]

    assert await shared.used_assertions(after=(first, ""), limit=2) == used[:2]
    assert await behind("a") == used[2:]
    assert await behind("z") == used[3:]
    assert [one for one in await shared.used_assertions() if one.owner == first] == used[:3]


async def test_an_assertion_that_was_copied_counts_as_used_until_its_latest_end(
    shared: MongoStore,
) -> None:
    owner = new_id()
    for until in (7, 9, 8):
        await shared.put_used_assertions([UsedAssertion(owner, "a", until)])
    await shared.put_used_assertions([])

    (found,) = await shared.used_assertions(after=(owner, ""), limit=1)
    assert found == UsedAssertion(owner, "a", 9)
    assert await shared.use_assertion(found, now=1, most=9) is AssertionUse.REPEATED
