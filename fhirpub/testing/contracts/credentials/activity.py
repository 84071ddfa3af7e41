"""Tests of what clients did: revoked tokens, used assertions, and when clients were last used."""

from __future__ import annotations

import asyncio

from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import Reopen

_MOST = 5


class ClientActivityContract:
    """Revoked tokens and used assertions stay until they are swept; the latest use counts.

    Both are bounded for each client.
    """

    async def test_a_revoked_token_is_known_to_every_process(
        self, store: Store, reader: Store
    ) -> None:
        token = RevokedToken("ward", "a-B_9", 7)

        assert await store.revoke_token(token, most=_MOST) is True
        assert await reader.revoked_tokens("ward") == [token]

    async def test_revoked_tokens_are_those_of_one_client(self, store: Store) -> None:
        await store.revoke_token(RevokedToken("ward", "a", 7), most=_MOST)

        assert await store.revoked_tokens("other") == []

    async def test_revoked_tokens_that_expire_first_come_first(self, store: Store) -> None:
        for jti, until in (("c", 2), ("a", 3), ("b", 1)):
            await store.revoke_token(RevokedToken("ward", jti, until), most=_MOST)

        assert [token.jti for token in await store.revoked_tokens("ward")] == ["b", "c", "a"]

    async def test_two_clients_may_have_tokens_of_one_name(self, store: Store) -> None:
        tokens = [RevokedToken(client, "same", 7) for client in ("ward", "other")]
        for token in tokens:
            await store.revoke_token(token, most=1)

        assert [await store.revoked_tokens(token.client) for token in tokens] == [
            [tokens[0]],
            [tokens[1]],
        ]

    async def test_a_token_that_is_revoked_again_stays_so_for_the_longer_time(
        self, store: Store, other_store: Store
    ) -> None:
        for until in (7, 9, 8):
            assert await store.revoke_token(RevokedToken("ward", "a", until), most=1)

        assert await other_store.revoked_tokens("ward") == [RevokedToken("ward", "a", 9)]

    async def test_a_client_cannot_have_more_revoked_tokens_than_allowed(
        self, store: Store
    ) -> None:
        tokens = [RevokedToken("ward", str(number), number) for number in range(_MOST + 1)]
        revoked = [await store.revoke_token(token, most=_MOST) for token in tokens]

        assert revoked == [True] * _MOST + [False]
        assert await store.revoked_tokens("ward") == tokens[:_MOST]
        assert await store.revoke_token(RevokedToken("other", "a", 1), most=_MOST) is True

    async def test_to_repeat_the_last_revocation_that_is_allowed_succeeds(
        self, store: Store
    ) -> None:
        for _ in range(2):
            assert await store.revoke_token(RevokedToken("ward", "a", 1), most=1) is True

    async def test_racing_revocations_of_one_token_succeed(
        self, store: Store, other_store: Store
    ) -> None:
        token = RevokedToken("ward", "a", 7)
        racing = [item.revoke_token(token, most=_MOST) for item in [store, other_store] * 5]

        assert await asyncio.gather(*racing) == [True] * 10
        assert await store.revoked_tokens("ward") == [token]

    async def test_expired_revocations_are_swept_and_no_others(self, store: Store) -> None:
        kept = [RevokedToken("ward", "b", 1001), RevokedToken("other", "c", 1002)]
        for token in (RevokedToken("ward", "a", 1000), *kept):
            await store.revoke_token(token, most=_MOST)

        assert await store.sweep_revoked_tokens(before=1001) == 1
        assert await store.revoked_tokens("ward") == kept[:1]
        assert await store.revoked_tokens("other") == kept[1:]
        assert await store.sweep_revoked_tokens(before=1001) == 0

    async def test_a_swept_revocation_makes_room_for_another(self, store: Store) -> None:
        await store.revoke_token(RevokedToken("ward", "a", 1), most=1)
        await store.sweep_revoked_tokens(before=2)

        assert await store.revoke_token(RevokedToken("ward", "b", 5), most=1) is True

    async def test_an_assertion_is_used_once_in_all_processes(
        self, store: Store, reader: Store
    ) -> None:
        used = UsedAssertion("ward", "a/B-9 ", 7)

        assert await store.use_assertion(used, now=1, most=_MOST) is AssertionUse.FIRST
        assert await reader.use_assertion(used, now=1, most=_MOST) is AssertionUse.REPEATED

    async def test_racing_uses_of_an_assertion_succeed_once(
        self, store: Store, other_store: Store
    ) -> None:
        for number in range(10):
            used = UsedAssertion("ward", str(number), 7)
            racing = [one.use_assertion(used, now=1, most=100) for one in [store, other_store] * 5]

            results = await asyncio.gather(*racing)

            assert results.count(AssertionUse.FIRST) == 1
            assert results.count(AssertionUse.REPEATED) == 9

    async def test_an_assertion_that_has_expired_stays_used_until_it_is_swept(
        self, store: Store
    ) -> None:
        used = UsedAssertion("ward", "a", 7)
        await store.use_assertion(used, now=1, most=_MOST)

        assert await store.use_assertion(used, now=9, most=_MOST) is AssertionUse.REPEATED

    async def test_assertions_of_one_name_differ_by_their_owners(self, store: Store) -> None:
        for owner, jti in (("ward", "a/b"), ("other", "a/b"), ("ward/a", "b")):
            used = UsedAssertion(owner, jti, 7)

            assert await store.use_assertion(used, now=1, most=1) is AssertionUse.FIRST

    async def test_only_assertions_that_have_not_expired_count_against_the_most(
        self, store: Store, other_store: Store
    ) -> None:
        for number in range(_MOST):
            used = UsedAssertion("ward", str(number), 10 + number)
            assert await store.use_assertion(used, now=1, most=_MOST) is AssertionUse.FIRST
        new = UsedAssertion("ward", "new", 20)

        assert await other_store.use_assertion(new, now=9, most=_MOST) is AssertionUse.TOO_MANY
        assert await other_store.use_assertion(new, now=10, most=_MOST) is AssertionUse.FIRST

    async def test_expired_assertions_are_swept_and_no_others(self, store: Store) -> None:
        kept, swept = UsedAssertion("ward", "b", 1001), UsedAssertion("ward", "a", 1000)
        for used in (swept, kept):
            await store.use_assertion(used, now=1, most=_MOST)

        assert await store.sweep_used_assertions(before=1001) == 1
        assert await store.use_assertion(kept, now=1, most=_MOST) is AssertionUse.REPEATED
        assert await store.use_assertion(swept, now=1, most=_MOST) is AssertionUse.FIRST

    async def test_used_assertions_are_listed_in_the_order_of_owner_and_id(
        self, store: Store, reader: Store
    ) -> None:
        keys = [("b", "a"), ("a", "z"), ("a", "B"), ("a/b", "a"), ("\u00e9", "1"), ("a", "b")]
        used = [UsedAssertion(owner, jti, 7) for owner, jti in keys]
        for one in used:
            await store.use_assertion(one, now=1, most=_MOST)

        assert await reader.used_assertions() == sorted(used, key=lambda one: (one.owner, one.jti))

    async def test_used_assertions_are_listed_page_by_page(self, store: Store) -> None:
        used = [UsedAssertion(owner, jti, 7) for owner in ("a", "b") for jti in ("x", "y", "z")]
        await store.put_used_assertions(used)

        first = await store.used_assertions(limit=2)
        second = await store.used_assertions(after=("a", "y"), limit=2)

        assert (first, second) == (used[:2], used[2:4])
        assert await store.used_assertions(after=("b", "z"), limit=2) == []

    async def test_an_assertion_that_was_copied_is_not_accepted_again(
        self, store: Store, reader: Store
    ) -> None:
        used = [UsedAssertion("ward", str(number), 7) for number in range(_MOST + 1)]
        await store.put_used_assertions(used)

        assert [await reader.use_assertion(one, now=1, most=100) for one in used] == [
            AssertionUse.REPEATED
        ] * len(used)

    async def test_of_a_copied_assertion_the_later_end_remains(self, store: Store) -> None:
        for until in (7, 9, 8):
            await store.put_used_assertions([UsedAssertion("ward", "a", until)])

        assert await store.used_assertions() == [UsedAssertion("ward", "a", 9)]
        await store.put_used_assertions([])

    async def test_the_latest_use_of_a_client_remains(
        self, store: Store, other_store: Store, reader: Store
    ) -> None:
        await store.put_client_uses({"ward": 5, "other": 9})
        await other_store.put_client_uses({"ward": 7, "other": 8})

        assert dict(await reader.client_uses()) == {"ward": 7, "other": 9}

    async def test_no_uses_change_nothing(self, store: Store) -> None:
        await store.put_client_uses({})

        assert dict(await store.client_uses()) == {}

    async def test_what_clients_did_is_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        token = RevokedToken("ward", "a", 7)
        await store.revoke_token(token, most=_MOST)
        await store.put_client_uses({"ward": 5})
        used = UsedAssertion("ward", "a", 7)
        await store.use_assertion(used, now=1, most=_MOST)
        await store.stop()

        again = await reopen()

        assert await again.revoked_tokens("ward") == [token]
        assert dict(await again.client_uses()) == {"ward": 5}
        assert await again.use_assertion(used, now=1, most=_MOST) is AssertionUse.REPEATED
