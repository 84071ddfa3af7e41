"""The store's promises as tests: an engine that passes them keeps them.

Subclass `StoreContract` and give it three fixtures; each test gets data of its own:

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def reopen(self) -> AsyncGenerator[Reopen]:
            '''A function that starts one more on the same data.'''
            async with reopening(lambda: MyStore(...)) as reopen:
                yield reopen

        @pytest.fixture
        async def store(self, reopen: Reopen) -> Store:
            '''A store that is started.'''
            return await reopen()

        @pytest.fixture
        async def other_store(self, reopen: Reopen, store: Store) -> Store:
            '''Another on the same data, as another process would have it.'''
            return await reopen()

Tests are asynchronous: pytest-asyncio, in its automatic mode, runs them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import unicodedata
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields, replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import (
    MAX_CHUNK_BYTES,
    MAX_PAGE_BYTES,
    SMALL_BYTES,
    Blob,
    BlobInfo,
    Client,
    ClientSecret,
    Page,
    SearchQuery,
    SigningKey,
    Version,
)
from fhirpub.storage.criteria import (
    ANYTHING,
    EARLIEST,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    LATEST,
    Criterion,
    Order,
    SearchValue,
    TimeMatch,
    TokenMatch,
    comes_after,
    encode,
    holds,
    sort_key,
)
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import (
    FOREVER,
    LAB,
    OTHER,
    REPORT,
    SYSTEM,
    a_version,
    new_id,
    successor,
)
from fhirpub.testing.webhook_contract import WebhookContract

__all__ = [
    "FOREVER",
    "LAB",
    "OTHER",
    "REPORT",
    "SYSTEM",
    "Reopen",
    "StoreContract",
    "a_blob",
    "a_client",
    "a_key",
    "a_version",
    "add_all",
    "all_pages",
    "find_ids",
    "keep",
    "match",
    "new_id",
    "query",
    "reopening",
    "successor",
]

Reopen = Callable[[], Awaitable[Store]]


@asynccontextmanager
async def reopening(make: Callable[[], Store]) -> AsyncGenerator[Reopen]:
    """Give a function that starts one more of what ``make`` makes; all are stopped in the end."""
    async with AsyncExitStack() as stack:

        async def start() -> Store:
            store = make()
            await store.start()
            stack.push_async_callback(store.stop)
            return store

        yield start


def a_blob(data: bytes | None = None, content_type: str = "application/pdf") -> Blob:
    """Return a document of these or of random bytes."""
    data = os.urandom(100) if data is None else data
    return Blob(hashlib.sha256(data).hexdigest(), content_type, data, "Blood count")


def a_client(**changes: Any) -> Client:
    """Return a new client."""
    usual = Client(
        id=new_id(), tenant=LAB, name="Lab", environment="sandbox", created=1, secrets=()
    )
    return replace(usual, **changes)


def a_key(kid: str, **changes: Any) -> SigningKey:
    """Return a signing key."""
    usual = SigningKey(
        kid=kid, algorithm="ES256", environment="sandbox", created=1, private_pem=b"pem"
    )
    return replace(usual, **changes)


def match(system: str | None = None, value: str | None = None) -> tuple[TokenMatch, ...]:
    """Return a group of one alternative."""
    return (TokenMatch(system, value),)


def query(
    *identifiers: tuple[TokenMatch, ...],
    ids: Sequence[str] | None = None,
    after: tuple[int, str] | None = None,
    limit: int = 20,
) -> SearchQuery:
    """Return a query for reports."""
    wanted = None if ids is None else frozenset(ids)
    return SearchQuery(type=REPORT, ids=wanted, identifiers=identifiers, after=after, limit=limit)


def found_by(*values: SearchValue, **changes: Any) -> Version:
    """Return version 1 of a new resource that is found by these values."""
    return a_version(search=encode(values), **changes)


def wanting(*criteria: Criterion, **changes: Any) -> SearchQuery:
    """Return a query for reports that fulfil all of these."""
    return replace(SearchQuery(type=REPORT, criteria=criteria), **changes)


def has(name: str, *any_of: TokenMatch | TimeMatch, negated: bool = False) -> Criterion:
    """Return the criterion that one of these alternatives matches, or none of them."""
    return Criterion(name, any_of, negated)


def token(value: str | None = None, system: str | None = None) -> TokenMatch:
    """Return one form of a token search."""
    return TokenMatch(system, value)


def criteria_of_every_form(ids: Sequence[str]) -> list[tuple[Criterion, str]]:
    """Return criteria, and which of the four reports of their test fulfil them."""
    return [
        (has("code", token("a")), "13"),
        (has("code", token("a", "s")), "1"),
        (has("code", token("a", "")), "3"),
        (has("code", token(None, "s")), "12"),
        (has("code", token(None, "")), "3"),
        (has("code", token("a"), token("b")), "123"),
        (has("code", token("b", "s"), token("a", "")), "23"),
        (has("code", token("c"), token(None, "t")), "2"),
        (has("code", ANYTHING), "123"),
        (has("code", ANYTHING, negated=True), "4"),
        (has("code", token("a"), negated=True), "24"),
        (has("code", token("a", "s"), token("b"), negated=True), "34"),
        (has("code", token("status")), ""),
        (has("cod", token("a")), ""),
        (has("code"), ""),
        (has("code", negated=True), "1234"),
        (has("date", TimeMatch(from_=100, until=200)), "1"),
        (has("date", TimeMatch(from_=101)), "23"),
        (has("date", TimeMatch(before=250)), "12"),
        (has("date", TimeMatch(after=200)), "23"),
        (has("date", TimeMatch(until=200)), "1"),
        (has("date", TimeMatch(from_=100, before=101), TimeMatch(after=900)), "13"),
        (has("date", TimeMatch()), "123"),
        (has("date", TimeMatch(from_=100), negated=True), "4"),
        (has("date", ANYTHING, negated=True), "4"),
        (has(IDENTIFIER, token("v1")), "1"),
        (has(IDENTIFIER, token("v1", "x")), ""),
        (has(IDENTIFIER, token("v1", SYSTEM), token("v2"), negated=True), "34"),
        (has(IDENTIFIER, token(None, SYSTEM), negated=True), ""),
        (has(IDENTIFIER, ANYTHING), "1234"),
        (has(IDENTIFIER, ANYTHING, negated=True), ""),
        (has(LAST_UPDATED, TimeMatch(from_=1_002)), "234"),
        (has(LAST_UPDATED, TimeMatch(after=1_002)), "234"),
        (has(LAST_UPDATED, TimeMatch(before=1_003)), "12"),
        (has(LAST_UPDATED, TimeMatch(until=1_003)), "12"),
        (has(LAST_UPDATED, TimeMatch(from_=1_002, until=1_003), negated=True), "134"),
        (has(LAST_UPDATED, TimeMatch(before=1_002), TimeMatch(from_=1_004)), "14"),
        (has(ID, token(ids[1]), token(ids[2], "")), "12"),
        (has(ID, token(ids[1], "x")), ""),
        (has(ID, token(ids[1]), negated=True), "234"),
        (has("subject", TokenMatch("P", "", ids[1])), "1"),
        (has("subject", TokenMatch("P", "", ids[4])), ""),
        (has("subject", TokenMatch("Q", "", ids[1])), ""),
        (has("subject", TokenMatch("P", ids[1]), TokenMatch("P", "", ids[1])), "14"),
        (
            has("subject", token("x"), TokenMatch("P", "", ids[3]), TokenMatch("P", "", ids[1])),
            "123",
        ),
        (has("subject", TokenMatch("P", "", ids[1]), negated=True), "234"),
        (has("subject", TokenMatch("P", None)), "1234"),
        (has("subject", TokenMatch("P", ""), TokenMatch("P", "x")), "123"),
        (has("subject", token("")), "13"),
    ]


async def add_all(store: Store, versions: Sequence[Version], tenant: str = LAB) -> None:
    """Add versions, all of which must be new."""
    added = await asyncio.gather(*(store.add(tenant, version) for version in versions))
    assert all(added)


async def find_ids(store: Store, wanted: SearchQuery, tenant: str = LAB) -> set[str]:
    """Return the ids that a search finds, after a look at its total."""
    page = await store.search(tenant, wanted)
    assert page.total == len(page.versions)
    assert not page.more
    return {version.id for version in page.versions}


async def all_pages(store: Store, wanted: SearchQuery) -> list[Page]:
    """Return the pages of a search, each asked for with the last entry of the one before."""
    pages = [await store.search(LAB, wanted)]
    while pages[-1].more:
        last = pages[-1].versions[-1]
        place = sort_key(wanted.order, last)
        pages.append(await store.search(LAB, replace(wanted, after=place)))
    return pages


class _AddingContract:
    """One insert is the whole commit."""

    async def test_a_version_that_is_new_is_added(self, store: Store) -> None:
        assert await store.add(LAB, a_version()) is True

    async def test_a_key_that_is_taken_is_not_added_again(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert await store.add(LAB, first) is False

    async def test_a_refused_version_changes_nothing(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        await store.add(LAB, replace(first, body=b"other", documents=(a_blob().sha256,)))

        assert await store.version(LAB, first.id, 1) == first

    async def test_of_racing_adds_of_one_key_exactly_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        candidates = [replace(first, body=b"%d" % number) for number in range(50)]
        stores = [store, other_store] * 25

        added = await asyncio.gather(
            *(item.add(LAB, version) for item, version in zip(stores, candidates, strict=True))
        )

        assert added.count(True) == 1
        winner = candidates[added.index(True)]
        assert await store.version(LAB, first.id, 1) == winner
        assert await other_store.latest(LAB, first.id) == winner

    async def test_racing_adds_of_different_keys_all_succeed(
        self, store: Store, other_store: Store
    ) -> None:
        versions = [a_version() for _ in range(50)]

        await asyncio.gather(add_all(store, versions[:25]), add_all(other_store, versions[25:]))

        ids = [version.id for version in versions]
        assert await find_ids(store, query(ids=ids, limit=50)) == set(ids)

    async def test_of_racing_updates_to_the_same_version_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        await store.add(LAB, first)
        candidates = [successor(first, body=b"%d" % number) for number in range(20)]

        added = await asyncio.gather(
            *(store.add(LAB, candidate) for candidate in candidates[:10]),
            *(other_store.add(LAB, candidate) for candidate in candidates[10:]),
        )

        assert added.count(True) == 1
        assert await other_store.latest(LAB, first.id) == candidates[added.index(True)]

    @pytest.mark.parametrize(
        "changes",
        [
            {"body": bytes(range(256))},
            {"body": os.urandom(1_000_000)},
            {"response": bytes(range(256))},
            {"response": os.urandom(200_000)},
            {"parts": bytes(range(256))},
            {"parts": os.urandom(200_000)},
            {"events": b'[{"id":"1"},{"id":"2"}]'},
            {"documents": ("ff" * 32, "00" * 32, "0f" * 32)},
            {"value": "Größe 測試 🩺 e\u0301"},
            {"system": "urn:oid:1.2.3 \t'\"|%_\\"},
            {"status": "amended"},
            {"search": encode([("code", "1-8", "http://loinc.org")])},
            {"search": encode([("date", EARLIEST, 5), ("date", 7, LATEST)])},
            {"search": encode([("code", '"[\\,\u0001é', "")])},
            {"type": "Observation"},
            {"created": 1, "updated": 2**52},
            {"version": 2**31},
        ],
        ids="+".join,
    )
    async def test_a_version_comes_back_as_it_was_added(
        self, store: Store, reader: Store, changes: dict[str, object]
    ) -> None:
        version = a_version(**changes)
        await store.add(LAB, version)

        read = await reader.version(LAB, version.id, version.version)

        assert read is not None
        for field in fields(Version):
            assert getattr(read, field.name) == getattr(version, field.name), field.name

    async def test_an_added_version_is_seen_by_everybody_at_once(
        self, store: Store, reader: Store
    ) -> None:
        for _ in range(20):
            version = a_version()
            assert await reader.latest(LAB, version.id) is None
            await store.add(LAB, version)

            assert await reader.latest(LAB, version.id) == version
            assert await reader.version(LAB, version.id, 1) == version
            assert await reader.history(LAB, version.id) == [version]
            assert (await reader.search(LAB, query(ids=[version.id]))).versions == (version,)

    async def test_a_cancelled_caller_does_not_harm_the_others(self, store: Store) -> None:
        versions = [a_version() for _ in range(30)]
        tasks = [asyncio.create_task(store.add(LAB, version)) for version in versions]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()

        results = await asyncio.gather(*tasks, return_exceptions=True)

        others = [result for number, result in enumerate(results) if number % 3]
        assert others == [True] * 20

    async def test_what_was_added_is_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        version, blob = a_version(response=b"answer", parts=b"parts", events=b"[1]"), a_blob()
        await keep(store, LAB, [blob])
        await store.add(LAB, version)
        await store.stop()

        again = await reopen()

        assert await again.latest(LAB, version.id) == version
        assert await whole_blobs(again, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_stop_finishes_what_was_handed_in(self, store: Store, reopen: Reopen) -> None:
        versions = [a_version() for _ in range(50)]
        tasks = [asyncio.create_task(store.add(LAB, version)) for version in versions]
        await asyncio.sleep(0)

        await store.stop()

        assert all(await asyncio.gather(*tasks))
        again = await reopen()
        assert [await again.latest(LAB, version.id) for version in versions] == versions

    async def test_stopping_twice_is_no_trouble(self, store: Store) -> None:
        await store.stop()

        await store.stop()

    async def test_a_stopped_store_is_unavailable(self, store: Store) -> None:
        await store.stop()

        for call in (
            store.add(LAB, a_version()),
            store.latest(LAB, new_id()),
            store.search(LAB, query()),
            keep(store, LAB, [a_blob()]),
            store.tenants(),
            store.check(),
        ):
            with pytest.raises(StoreUnavailable):
                await call

    async def test_a_store_that_works_passes_its_check(self, store: Store) -> None:
        await asyncio.gather(*(store.check() for _ in range(5)))


async def keep(store: Store, tenant: str, blobs: Collection[Blob]) -> None:
    """Keep blobs that no version names, as a request that goes no further leaves them."""
    await store.add(tenant, a_version(), blobs)


async def whole_blobs(store: Store, tenant: str, names: Collection[str]) -> dict[str, Blob]:
    """Return blobs with all their bytes; unknown ones are left out."""
    known = await store.blobs(tenant, names)
    return {name: await store.whole_blob(tenant, blob) for name, blob in known.items()}


class _ReadingContract:
    """The newest version, one of them, or all of them."""

    async def test_what_was_never_added_is_not_there(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.latest(LAB, new_id()) is None
        assert await store.version(LAB, new_id(), 1) is None
        assert await store.history(LAB, new_id()) == []

    @pytest.mark.parametrize("version", [-1, 0, 2, 2**63, 10**30])
    async def test_a_version_that_does_not_exist_is_none(self, store: Store, version: int) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert await store.version(LAB, first.id, version) is None

    async def test_each_version_can_be_read(self, store: Store) -> None:
        first = a_version()
        second = successor(first, status="amended", body=b"2")
        await store.add(LAB, first)
        await store.add(LAB, second)

        assert await store.version(LAB, first.id, 1) == first
        assert await store.version(LAB, first.id, 2) == second

    async def test_the_latest_version_is_never_stale(
        self, store: Store, other_store: Store
    ) -> None:
        current = a_version()
        await store.add(LAB, current)

        for number in range(30):
            current = successor(current, body=b"x" * (number * 5_000))
            await (store, other_store)[number % 2].add(LAB, current)

            assert await store.latest(LAB, current.id) == current
            assert await other_store.latest(LAB, current.id) == current

    async def test_what_is_shown_is_the_latest_version_without_what_readers_do_not_see(
        self, store: Store, other_store: Store
    ) -> None:
        current = a_version()
        await store.add(LAB, current)

        for number in range(10):
            current = successor(current, body=b"x" * (number * 15_000))
            await (store, other_store)[number % 2].add(LAB, current)

            assert await store.latest_public(LAB, current.id) == current.without_internal_fields()
            assert (
                await other_store.latest_public(LAB, current.id)
                == current.without_internal_fields()
            )

    async def test_of_a_first_version_what_came_with_it_and_its_answer_are_not_shown(
        self, store: Store
    ) -> None:
        told = b'[{"id":"a.1.1","type":"a.created","data":{}}]'
        values = encode([("code", "1", "")])
        version = a_version(response=b"{}", parts=b"{}", events=told, search=values)
        await store.add(LAB, version)

        found = await store.latest_public(LAB, version.id)

        assert found == replace(version, response=b"", parts=b"", events=b"[]", search=b"[]")

    async def test_nothing_is_shown_of_what_is_not_there(self, store: Store) -> None:
        assert await store.latest_public(LAB, new_id()) is None

    async def test_the_latest_version_is_the_highest_number_and_not_text(
        self, store: Store
    ) -> None:
        first = a_version()
        versions = [replace(first, version=number) for number in range(1, 12)]
        await add_all(store, versions)

        latest = await store.latest(LAB, first.id)

        assert latest is not None
        assert latest.version == 11

    @pytest.mark.parametrize(
        ("below", "limit", "expected"),
        [
            (None, 20, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
            (None, 3, [12, 11, 10]),
            (10, 3, [9, 8, 7]),
            (3, 20, [2, 1]),
            (1, 20, []),
            (99, 2, [12, 11]),
            (10**30, 1, [12]),
            (None, 0, []),
        ],
    )
    async def test_history_is_newest_first_below_a_version_and_up_to_a_limit(
        self, store: Store, below: int | None, limit: int, expected: list[int]
    ) -> None:
        first = a_version()
        await add_all(store, [replace(first, version=number) for number in range(1, 13)])
        await add_all(store, [a_version() for _ in range(5)])

        history = await store.history(LAB, first.id, below=below, limit=limit)

        assert [version.version for version in history] == expected
        assert {version.id for version in history} <= {first.id}

    async def test_a_history_of_large_versions_is_shorter(self, store: Store) -> None:
        first = a_version(body=b"x" * (MAX_PAGE_BYTES // 2))
        for number in range(1, 5):
            await store.add(LAB, replace(first, version=number))

        history = await store.history(LAB, first.id, limit=100)

        assert [version.version for version in history] in ([4], [4, 3])


class _SearchingContract:
    """Exact, complete, in order, and never an old version."""

    async def test_a_search_for_a_type_finds_all_of_it_and_no_other(self, store: Store) -> None:
        reports = [a_version() for _ in range(3)]
        await add_all(store, [*reports, a_version(type="Observation")])

        assert await find_ids(store, query()) == {report.id for report in reports}

    @pytest.mark.parametrize(
        ("groups", "expected"),
        [
            ([match("s1", "v1")], "a"),
            ([match("s1")], "ab"),
            ([match(None, "v1")], "ac"),
            ([match()], "abcd"),
            ([match("s1", "v3")], ""),
            ([match("s1", "v1") + match("s2", "v3")], "ad"),
            ([match("s1", "v3") + match("s2", "v1")], "c"),
            ([match(None, "v2") + match(None, "v3")], "bd"),
            ([match("s1") + match("s2")], "abcd"),
            ([match("s1") + match(None, "v3")], "abd"),
            ([match("s2", "v1") + match(None, "v2") + match("s9")], "bc"),
            ([match("s1", "v1") + match()], "abcd"),
            ([match("s1"), match(None, "v1")], "a"),
            ([match("s1") + match("s2", "v3"), match(None, "v1") + match("s2")], "ad"),
            ([match("s1"), match("s2")], ""),
            ([()], ""),
            ([match("s1"), ()], ""),
            ([match("")], ""),
            ([match(None, "")], ""),
        ],
    )
    async def test_alternatives_and_conjunctions_of_identifiers(
        self, store: Store, groups: list[tuple[TokenMatch, ...]], expected: str
    ) -> None:
        tokens = {"a": ("s1", "v1"), "b": ("s1", "v2"), "c": ("s2", "v1"), "d": ("s2", "v3")}
        stored = {
            name: a_version(system=system, value=value) for name, (system, value) in tokens.items()
        }
        await add_all(store, list(stored.values()))

        assert await find_ids(store, query(*groups)) == {stored[name].id for name in expected}

    async def test_many_alternatives_are_as_good_as_few(self, store: Store) -> None:
        versions = [a_version() for _ in range(3)]
        await add_all(store, versions)
        others = [TokenMatch(None, f"none-{number}") for number in range(40_000)]
        wanted = [TokenMatch(version.system, version.value) for version in versions[:2]]

        assert await find_ids(store, query((*others, *wanted))) == {
            version.id for version in versions[:2]
        }

    @pytest.mark.parametrize(
        ("stored", "asked"),
        [
            ("Abc", "abc"),
            ("abc", "abc "),
            ("abc", " abc"),
            ("abc", "abc\0"),
            ("abc", "abc\0def"),
            ("abc", "ab"),
            ("abc", "a%"),
            ("abc", "a_c"),
            ("abc", "a*"),
            ("abc", "a.c"),
            ("007", "7"),
            ("7", "7.0"),
            ("é", "e"),
            (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
            ("ß", "ss"),
            ("\uff21", "A"),
        ],
    )
    @pytest.mark.parametrize(
        "others",
        [
            (),
            match("x", "y") + match("z", "z"),
            match("x") + match("z") + match(None, "x") + match(None, "z"),
        ],
        ids=["alone", "with-pairs", "with-halves"],
    )
    async def test_texts_match_exactly_or_not_at_all(
        self, store: Store, stored: str, asked: str, others: tuple[TokenMatch, ...]
    ) -> None:
        version = a_version(system=stored, value=stored)
        await store.add(LAB, version)

        for right in (match(stored), match(None, stored), match(stored, stored)):
            assert await find_ids(store, query(right + others)) == {version.id}
        for wrong in (
            match(asked),
            match(None, asked),
            match(stored, asked),
            match(asked, stored),
        ):
            assert await find_ids(store, query(wrong + others)) == set()

    async def test_ids_are_alternatives_too(self, store: Store) -> None:
        versions = [a_version() for _ in range(4)]
        await add_all(store, versions)
        ids = [version.id for version in versions[:2]]

        assert await find_ids(store, query(ids=[*ids, new_id()])) == set(ids)

    async def test_no_ids_find_nothing(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await find_ids(store, query(ids=[])) == set()

    async def test_ids_and_identifiers_must_both_hold(self, store: Store) -> None:
        one, two = a_version(), a_version()
        await add_all(store, [one, two])

        assert await find_ids(store, query(match(None, one.value), ids=[one.id, two.id])) == {
            one.id
        }
        assert await find_ids(store, query(match(None, one.value), ids=[two.id])) == set()

    async def test_an_id_of_another_type_is_not_found(self, store: Store) -> None:
        other = a_version(type="Observation")
        await store.add(LAB, other)

        assert await find_ids(store, query(match(None, other.value), ids=[other.id])) == set()

    async def test_a_resource_is_found_once_and_in_its_newest_version(self, store: Store) -> None:
        first = a_version()
        second = successor(first, body=b"2")
        third = successor(second, body=b"3")
        for version in (first, second, third):
            await store.add(LAB, version)

            for wanted in (
                query(),
                query(ids=[first.id]),
                query(match(first.system)),
                query(match(None, first.value)),
                query(match(first.system, first.value)),
            ):
                assert await store.search(LAB, wanted) == Page((version,), 1, more=False)

    @pytest.mark.parametrize("by", ["type", "ids", "system", "value"])
    async def test_pages_are_in_order_complete_and_without_repetition(
        self, store: Store, by: str
    ) -> None:
        # Many of the same moment, and ids in another order than they were added in.
        versions = [a_version(updated=1_000 + number % 3, value="same") for number in range(23)]
        await add_all(store, versions)
        wanted = {
            "type": query(limit=4),
            "ids": query(ids=[version.id for version in versions], limit=4),
            "system": query(match(SYSTEM), limit=4),
            "value": query(match(None, "same"), limit=4),
        }[by]

        pages = await all_pages(store, wanted)

        expected = sorted(versions, key=lambda each: (-each.updated, each.id))
        assert [version for page in pages for version in page.versions] == expected
        assert [len(page.versions) for page in pages] == [4, 4, 4, 4, 4, 3]
        assert {page.total for page in pages} == {23}

    async def test_a_page_that_is_just_full_is_the_last(self, store: Store) -> None:
        await add_all(store, [a_version() for _ in range(4)])

        pages = await all_pages(store, query(limit=2))

        assert [(len(page.versions), page.more) for page in pages] == [(2, True), (2, False)]

    async def test_after_the_last_entry_there_is_nothing_more(self, store: Store) -> None:
        version = a_version()
        await store.add(LAB, version)

        page = await store.search(LAB, query(after=(version.updated, version.id)))

        assert page == Page((), 1, more=False)

    async def test_limit_0_gives_the_total_alone(self, store: Store) -> None:
        await add_all(store, [a_version() for _ in range(3)])

        assert await store.search(LAB, query(limit=0)) == Page((), 3, more=False)

    async def test_pages_are_not_disturbed_by_writes_in_between(self, store: Store) -> None:
        versions = [a_version(updated=1_000 + number) for number in range(12)]
        await add_all(store, versions)
        newest_first = versions[::-1]
        wanted = query(limit=4)

        first = await store.search(LAB, wanted)
        await store.add(LAB, a_version(updated=5_000))
        await store.add(LAB, successor(newest_first[1], updated=5_001))
        await store.add(LAB, successor(newest_first[10], updated=5_002))
        last = first.versions[-1]
        rest = await all_pages(store, replace(wanted, after=(last.updated, last.id)))

        seen = [*first.versions, *(version for page in rest for version in page.versions)]
        untouched = [version for version in newest_first if version is not newest_first[10]]
        assert seen == untouched

    async def test_a_total_is_of_the_same_moment_as_its_page(
        self, store: Store, other_store: Store
    ) -> None:
        async def write() -> None:
            for _ in range(40):
                await other_store.add(LAB, a_version())

        writing = asyncio.create_task(write())
        pages = []
        while not writing.done():
            pages.append(await store.search(LAB, query(limit=100)))
        await writing

        assert all(page.total == len(page.versions) for page in pages)


class _FindingContract:
    """By what is stored with the newest version, and by nothing else."""

    async def test_criteria_of_every_form(self, store: Store) -> None:
        ids = [new_id() for _ in range(5)]
        stored = [
            a_version(id=ids[0], type="Observation"),
            found_by(("code", "a", "s"), ("date", 100, 200), ("subject", "", "P"), id=ids[1]),
            found_by(
                ("code", "b", "s"),
                ("code", "c", "t"),
                ("date", 101, 300),
                ("subject", "x", "P"),
                id=ids[2],
            ),
            found_by(("code", "a", ""), ("date", 500, 1_000), ("subject", "", "P"), id=ids[3]),
            found_by(("status", "a", "s"), ("subject", ids[1], "P"), id=ids[4]),
        ]
        stored = [
            replace(version, value=f"v{number}", updated=1_000 + number)
            for number, version in enumerate(stored)
        ]
        await add_all(store, stored)
        names = {id_: str(number) for number, id_ in enumerate(ids)}

        for criterion, expected in criteria_of_every_form(ids):
            wanted = wanting(criterion)

            by_search = {names[id_] for id_ in await find_ids(store, wanted)}
            among = replace(wanted, ids=frozenset(ids))
            by_look_up = {names[id_] for id_ in await find_ids(store, among)}

            assert "".join(sorted(by_search)) == expected, criterion
            assert by_look_up == by_search, criterion

    async def test_all_criteria_must_hold(self, store: Store) -> None:
        both = found_by(("code", "a", ""), ("status", "final", ""))
        one = found_by(("code", "a", ""), ("status", "partial", ""))
        other = found_by(("code", "b", ""), ("status", "final", ""))
        await add_all(store, [both, one, other])
        code, status = has("code", token("a")), has("status", token("final"))

        assert await find_ids(store, wanting(code, status)) == {both.id}
        assert await find_ids(store, wanting(code, code, status)) == {both.id}
        assert await find_ids(store, wanting(code, replace(status, negated=True))) == {one.id}

    async def test_only_the_newest_version_is_found_by_its_values(self, store: Store) -> None:
        first = found_by(("status", "partial", ""), ("date", 1, 2))
        newer = encode([("status", "final", ""), ("date", 5, 6)])
        second = successor(first, search=newer)
        await add_all(store, [first, second, found_by(("status", "x", ""))])

        for old in (has("status", token("partial")), has("date", TimeMatch(after=0, until=2))):
            assert await store.search(LAB, wanting(old)) == Page((), 0, more=False)
        for new in (has("status", token("final")), has("date", TimeMatch(after=5))):
            assert await store.search(LAB, wanting(new)) == Page((second,), 1, more=False)
        assert second.id in await find_ids(
            store, wanting(has("status", token("partial"), negated=True))
        )

    async def test_values_are_the_tenants_own_and_the_types(self, store: Store) -> None:
        mine = found_by(("code", "a", ""))
        await store.add(LAB, mine)
        await store.add(OTHER, found_by(("code", "a", "")))
        await store.add(LAB, found_by(("code", "a", ""), type="Observation"))

        assert await find_ids(store, wanting(has("code", token("a")))) == {mine.id}

    @pytest.mark.parametrize(
        "text", ['a"b', '["code","x","y"]', "a\\b", "ä", "a,b", "a b", "%", "\x1f"]
    )
    async def test_values_match_exactly_or_not_at_all(self, store: Store, text: str) -> None:
        # What JSON or a query of the engine could take for something else.
        exact = found_by(("code", text, text))
        await add_all(
            store, [exact, found_by(("code", f"{text}x", "")), found_by(("code", "A", "A"))]
        )

        for right in (token(text), token(text, text), token(None, text)):
            assert await find_ids(store, wanting(has("code", right))) == {exact.id}
            both = has("code", right, token("y", "y"))
            assert await find_ids(store, wanting(both)) == {exact.id}
        for wrong in ("x", "y", "a", "b", "B"):
            assert await find_ids(store, wanting(has("code", token(wrong)))) == set()

    async def test_a_version_that_matches_twice_is_found_once(self, store: Store) -> None:
        version = found_by(("code", "a", "s"), ("code", "a", "t"), ("code", "b", "s"))
        await store.add(LAB, version)

        for criterion in (has("code", token("a")), has("code", token("a"), token("b"))):
            page = await store.search(LAB, wanting(criterion))
            assert page == Page((version,), 1, more=False)

    async def test_a_version_may_have_thousands_of_values(self, store: Store) -> None:
        version = found_by(*(("code", f"c{number}", "s") for number in range(5_000)))
        await store.add(LAB, version)

        assert await store.latest(LAB, version.id) == version
        assert await find_ids(store, wanting(has("code", token("c4999")))) == {version.id}

    async def test_whatever_is_asked_the_answer_is_that_of_a_look_at_everything(
        self, store: Store
    ) -> None:
        random = Random(2026)
        stored: dict[str, Version] = {}
        for number in range(50):
            values = _random_values(random)
            version = found_by(*values, value=f"v{number % 7}", updated=1_000 + number % 40)
            await store.add(LAB, version)
            if random.random() < 0.3:
                values = _random_values(random)
                version = successor(version, search=encode(values))
                await store.add(LAB, version)
            stored[version.id] = version

        for _ in range(60):
            wanted = _random_query(random, list(stored))
            matches = [
                item
                for item in stored.values()
                if all(holds(one, item) for one in wanted.criteria)
                and (wanted.ids is None or item.id in wanted.ids)
            ]
            pages = await all_pages(store, wanted)

            seen = [item for page in pages for item in page.versions]
            assert sorted(item.id for item in seen) == sorted(item.id for item in matches), wanted
            assert all(stored[item.id] == item for item in seen)
            assert {page.total for page in pages} == {len(matches)}
            places = [sort_key(wanted.order, item) for item in seen]
            for one, next_one in pairwise(places):
                assert comes_after(next_one, one, wanted.order), wanted

    async def test_pages_come_in_the_order_that_is_asked_for(self, store: Store) -> None:
        versions = {
            # By the lowest value, or from the highest one down; what has none comes last.
            "a": found_by(("code", "1", ""), ("date", 10, 20), updated=1_004, value="2"),
            "b": found_by(
                ("code", "1", ""), ("date", 20, 30), ("date", 70, 80), updated=1_003, value="1"
            ),
            "c": found_by(("code", "2", ""), ("date", 30, 40), updated=1_002, value="4"),
            "d": found_by(updated=1_001, value="3"),
        }
        await add_all(store, list(versions.values()))
        names = {version.id: name for name, version in versions.items()}
        newest_first = Order(LAST_UPDATED, descending=True)

        for order, expected in (
            ((Order("date"),), "abcd"),
            ((Order("date", descending=True),), "bcad"),
            ((Order("code"), Order("date", descending=True)), "bacd"),
            ((Order("code", descending=True), Order("date")), "cabd"),
            ((Order("code"), newest_first), "abcd"),
            ((Order(LAST_UPDATED),), "dcba"),
            ((newest_first,), "abcd"),
            ((Order(IDENTIFIER),), "badc"),
        ):
            pages = await all_pages(store, wanting(order=order, limit=1))

            seen = "".join(names[version.id] for page in pages for version in page.versions)
            assert seen == expected, order

    async def test_a_total_that_is_not_asked_for_is_not_given(self, store: Store) -> None:
        version = found_by(("code", "a", ""))
        await store.add(LAB, version)

        for wanted in (wanting(), wanting(has("code", token("a"))), wanting(ids={version.id})):
            page = await store.search(LAB, replace(wanted, count_up_to=0))
            assert page == Page((version,), None, more=False)

    @pytest.mark.parametrize("most", [1, 4, 5, 6])
    async def test_a_total_is_given_if_it_is_within_what_is_to_be_counted(
        self, store: Store, most: int
    ) -> None:
        versions = [found_by(("code", "a", "")) for _ in range(5)]
        await add_all(store, versions)
        ids = [version.id for version in versions]

        queries = [wanting(), wanting(has("code", token("a"))), query(), query(match(SYSTEM))]
        for wanted in (*queries, query(ids=ids[:5]), query(ids=[*ids, new_id()])):
            page = await store.search(LAB, replace(wanted, count_up_to=most))
            assert page.total == (5 if most >= 5 else None)
            assert len(page.versions) == 5

    async def test_pages_by_values_are_not_disturbed_by_writes_in_between(
        self, store: Store
    ) -> None:
        versions = [found_by(("code", "a", ""), updated=1_000 + number) for number in range(12)]
        await add_all(store, versions)
        newest_first = versions[::-1]
        wanted = wanting(has("code", token("a")), limit=4)

        first = await store.search(LAB, wanted)
        await store.add(LAB, found_by(("code", "a", ""), updated=5_000))
        await store.add(LAB, successor(newest_first[1], updated=5_001))
        await store.add(LAB, successor(newest_first[10], updated=5_002, search=b"[]"))
        place = sort_key(wanted.order, first.versions[-1])
        rest = await all_pages(store, replace(wanted, after=place))

        seen = [*first.versions, *(version for page in rest for version in page.versions)]
        assert seen == [version for version in newest_first if version is not newest_first[10]]

    async def test_a_changed_value_is_seen_at_once(self, store: Store, other_store: Store) -> None:
        current = found_by(("status", "s0", ""))
        await store.add(LAB, current)
        for number in range(1, 10):
            before = f"s{number - 1}"
            values = encode([("status", f"s{number}", "")])
            current = successor(current, search=values)
            await (store, other_store)[number % 2].add(LAB, current)

            assert await find_ids(store, wanting(has("status", token(f"s{number}")))) == {
                current.id
            }
            assert await find_ids(other_store, wanting(has("status", token(before)))) == set()


def _random_values(random: Random) -> list[SearchValue]:
    values: list[SearchValue] = [
        (name, random.choice("abc"), random.choice(["", "s", "t"]))
        for name in ("code", "status", "category")
        for _ in range(random.choice([0, 1, 1, 2]))
    ]
    for _ in range(random.choice([0, 1, 1, 2])):
        start = random.randrange(50)
        values.append(("date", start, start + random.choice([1, 5, 30, LATEST])))
    return values


def _random_query(random: Random, ids: Sequence[str]) -> SearchQuery:
    criteria = [_random_criterion(random) for _ in range(random.choice([0, 1, 1, 2, 3]))]
    names = random.sample(["code", "date", "status", LAST_UPDATED, ID], k=random.choice([1, 1, 2]))
    order = tuple(Order(name, random.choice([True, False])) for name in names)
    some = frozenset(random.sample(ids, k=random.choice([2, 30])))
    return wanting(
        *criteria,
        ids=random.choice([None, None, some]),
        limit=random.choice([3, 7, 50]),
        **random.choice([{}, {"order": order}]),
    )


def _random_criterion(random: Random) -> Criterion:
    name = random.choice(["code", "status", "category", "date", "date", LAST_UPDATED, IDENTIFIER])
    negated = random.random() < 0.25
    count = random.choice([1, 1, 2, 3])
    if name not in ("date", LAST_UPDATED):
        values = [None, *("abc" if name != IDENTIFIER else ("v1", "v2", "v3"))]
        systems = [None, None, "", "s", SYSTEM]
        some = [TokenMatch(random.choice(systems), random.choice(values)) for _ in range(count)]
        return Criterion(name, tuple(some), negated)
    base = 1_000 if name == LAST_UPDATED else 0

    def bound() -> int | None:
        return random.choice([None, base + random.randrange(60)])

    times = [
        TimeMatch(from_=bound(), before=bound(), after=bound(), until=bound())
        for _ in range(count)
    ]
    return Criterion(name, tuple(times), negated)


class _ListingContract:
    """Every version of a type, newest first."""

    async def test_every_version_is_listed_once_and_in_order(self, store: Store) -> None:
        first = [found_by(("code", "a", ""), updated=1_000 + number % 3) for number in range(5)]
        later = [
            successor(version, updated=2_000 + n, search=b"[]") for n, version in enumerate(first)
        ]
        await add_all(store, [*first, *later[:3], a_version(type="Observation")])
        await store.add(OTHER, a_version())
        wanted = wanting(every_version=True, limit=3)

        pages = await all_pages(store, wanted)

        expected = sorted([*first, *later[:3]], key=lambda each: (-each.updated, each.id))
        assert [version for page in pages for version in page.versions] == expected
        assert {page.total for page in pages} == {8}
        for criterion, matches in (
            (
                has(LAST_UPDATED, TimeMatch(from_=1_002)),
                [e for e in expected if e.updated > 1_001],
            ),
            (has("code", token("a")), [version for version in expected if version in first]),
        ):
            page = await store.search(LAB, wanting(criterion, every_version=True))
            assert page == Page(tuple(matches), len(matches), more=False)
        own = frozenset({first[0].id})
        page = await store.search(LAB, wanting(ids=own, every_version=True))
        assert page == Page((later[0], first[0]), 2, more=False)


class _RetakingContract:
    """The search values of versions can be rebuilt; nothing else changes."""

    async def test_values_are_replaced_and_nothing_else(
        self, store: Store, other_store: Store
    ) -> None:
        first = found_by(("code", "a", ""), ("code", "b", ""), documents=("00" * 32,))
        second = successor(first)
        theirs = found_by(("code", "a", ""))
        await add_all(store, [first, second])
        await store.add(OTHER, theirs)
        changed = encode([("code", "b", ""), ("code", "c", "s"), ("date", 5, 6)])

        await store.replace_search(LAB, second.id, 2, changed)

        assert await store.latest(LAB, first.id) == replace(second, search=changed)
        assert await other_store.version(LAB, first.id, 1) == first
        for code, expected in (("a", set()), ("b", {first.id}), ("c", {first.id})):
            assert await find_ids(other_store, wanting(has("code", token(code)))) == expected
        assert await find_ids(store, wanting(has("date", TimeMatch(after=5)))) == {first.id}
        assert await find_ids(store, wanting(has("code", token("a"))), OTHER) == {theirs.id}

    async def test_what_is_not_there_is_not_made_by_a_replacement(self, store: Store) -> None:
        version = found_by(("code", "a", ""))
        await store.add(LAB, version)

        await store.replace_search(LAB, version.id, 2, b"[]")
        await store.replace_search(OTHER, version.id, 1, b"[]")

        assert await store.history(LAB, version.id) == [version]
        assert await find_ids(store, wanting(has("code", token("a")))) == {version.id}

    async def test_the_rules_of_the_values_are_kept(
        self, store: Store, other_store: Store
    ) -> None:
        assert await store.search_rules() == ""

        for rules in ("one", "another"):
            await store.put_search_rules(rules)

            assert await other_store.search_rules() == rules


class _TenancyContract:
    """Another tenant's data is indistinguishable from what does not exist."""

    @pytest.mark.parametrize("versions", [1, 2])
    async def test_a_version_is_not_another_tenants_to_read(
        self, store: Store, versions: int
    ) -> None:
        version = a_version()
        await store.add(LAB, version)
        if versions == 2:
            await store.add(LAB, successor(version))

        assert await store.latest(OTHER, version.id) is None
        assert await store.latest_public(OTHER, version.id) is None
        assert await store.version(OTHER, version.id, 1) is None
        assert await store.history(OTHER, version.id) == []

    @pytest.mark.parametrize("form", ["type", "ids", "system", "value", "pair", "mixed"])
    async def test_a_search_stays_within_the_tenant(self, store: Store, form: str) -> None:
        mine = a_version(value="same")
        theirs = a_version(value="same")
        await store.add(LAB, mine)
        await store.add(OTHER, theirs)
        wanted = {
            "type": query(),
            "ids": query(ids=[mine.id, theirs.id]),
            "system": query(match(SYSTEM)),
            "value": query(match(None, "same")),
            "pair": query(match(SYSTEM, "same")),
            "mixed": query(match(SYSTEM) + match(None, "same")),
        }[form]

        assert await find_ids(store, wanted, LAB) == {mine.id}
        assert await find_ids(store, wanted, OTHER) == {theirs.id}
        assert await find_ids(store, wanted, new_id()) == set()

    async def test_a_taken_key_is_refused_to_another_tenant_and_stays_hidden(
        self, store: Store
    ) -> None:
        version = a_version()
        await store.add(LAB, version)

        assert await store.add(OTHER, replace(version, body=b"theirs")) is False
        assert await store.latest(OTHER, version.id) is None
        assert await store.latest(LAB, version.id) == version

    async def test_blobs_are_the_tenants_own(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])

        assert await store.blobs(OTHER, [blob.sha256]) == {}

    async def test_the_same_bytes_of_two_tenants_are_kept_apart(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])
        await keep(store, OTHER, [replace(blob, content_type="text/plain")])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
        assert (await store.blobs(OTHER, [blob.sha256]))[blob.sha256].content_type == "text/plain"

    async def test_a_sweep_stays_within_the_tenant(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])

        assert await store.sweep_blobs(OTHER, before=FOREVER) == 0
        assert await whole_blobs(store, LAB, [blob.sha256])

    @pytest.mark.parametrize("added", ["before", "after"])
    async def test_another_tenants_version_does_not_keep_a_blob(
        self, store: Store, added: str
    ) -> None:
        blob = a_blob()
        steps = [
            keep(store, LAB, [blob]),
            store.add(OTHER, a_version(documents=(blob.sha256,))),
        ]
        for step in steps if added == "before" else steps[::-1]:
            await step

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1


_SIZES = [0, 1, 1_000, 65_536, 65_537, 261_119, 261_120, 261_121, 1_044_481, 5 * 1024 * 1024]
"""Around what is small, and around the ends of the stores' pieces."""
_OF_ANY_SIZE = pytest.mark.parametrize("size", [1_000, 300_000])


async def store_blob(store: Store, blob: Blob) -> BlobInfo:
    """Keep a blob of the lab's; return what is known of it."""
    await keep(store, LAB, [blob])
    return (await store.blobs(LAB, [blob.sha256]))[blob.sha256]


async def pieces_of(
    store: Store, blob: BlobInfo, part: slice, *, tenant: str = LAB
) -> list[bytes]:
    """Return the pieces of a part."""
    return [piece async for piece in store.blob_pieces(tenant, blob, part)]


class _BlobContract:
    """Documents are kept until no version can refer to them any more."""

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_blob_comes_back_as_it_was_added(
        self, store: Store, reader: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size), "image/jpeg")
        await keep(store, LAB, [blob])

        assert await whole_blobs(reader, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_blobs_of_all_sizes_that_come_at_the_same_time_are_all_kept(
        self, store: Store
    ) -> None:
        blobs = {blob.sha256: blob for blob in (a_blob(os.urandom(size)) for size in _SIZES)}
        versions = [a_version(documents=(blob,)) for blob in blobs]

        await asyncio.gather(
            *(store.add(LAB, version, [blobs[version.documents[0]]]) for version in versions)
        )

        assert await whole_blobs(store, LAB, blobs) == blobs

    @pytest.mark.parametrize("size", _SIZES)
    async def test_what_is_known_of_a_blob_has_its_bytes_only_if_they_are_few(
        self, store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        known = await store_blob(store, blob)

        assert known.size == size
        assert known.data == (blob.data if size <= SMALL_BYTES else None)

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_blob_is_read_in_pieces_that_base64_can_put_together(
        self, store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        known = await store_blob(store, blob)

        pieces = await pieces_of(store, known, slice(0, size))

        assert b"".join(pieces) == blob.data
        assert all(len(piece) <= MAX_CHUNK_BYTES for piece in pieces)
        assert all(len(piece) % 3 == 0 for piece in pieces[:-1])

    @pytest.mark.parametrize(
        ("start", "stop"),
        [
            *((0, 1), (5_000_000, 5_000_001), (0, 5_000_001), (7, 7), (100, 4_999_000)),
            *((261_119, 261_121), (261_120, 522_240), (1_044_480, 1_044_481), (1, 2_088_961)),
        ],
    )
    async def test_a_part_of_a_blob_is_read_by_itself(
        self, store: Store, start: int, stop: int
    ) -> None:
        blob = a_blob(bytes(range(256)) * 19_531 + os.urandom(65))
        known = await store_blob(store, blob)
        assert known.size == 5_000_001

        pieces = await pieces_of(store, known, slice(start, stop))

        assert b"".join(pieces) == blob.data[start:stop]

    async def test_nobody_reads_pieces_of_another_tenants_blob(self, store: Store) -> None:
        known = await store_blob(store, a_blob(os.urandom(100_000)))

        with pytest.raises(StoreUnavailable):
            await pieces_of(store, known, slice(0, 100_000), tenant=OTHER)

    async def test_a_blob_that_is_swept_has_no_pieces_any_more(self, store: Store) -> None:
        known = await store_blob(store, a_blob(os.urandom(100_000)))
        await store.sweep_blobs(LAB, before=FOREVER)

        with pytest.raises(StoreUnavailable):
            await pieces_of(store, known, slice(0, 100_000))

    async def test_several_blobs_are_read_at_once_and_unknown_ones_left_out(
        self, store: Store
    ) -> None:
        blobs = [a_blob(os.urandom(40_000)) for _ in range(5)]
        await keep(store, LAB, blobs)
        names = [blob.sha256 for blob in blobs]

        read = await whole_blobs(store, LAB, [*names[:4], a_blob().sha256])

        assert read == {blob.sha256: blob for blob in blobs[:4]}

    async def test_a_version_may_bring_thousands_of_blobs(self, store: Store) -> None:
        blobs = [a_blob(b"%d" % number) for number in range(10_000)]
        names = tuple(blob.sha256 for blob in blobs)
        version = a_version(documents=names)

        added = await asyncio.gather(store.add(LAB, version, blobs), store.add(LAB, a_version()))

        assert all(added)
        assert await store.latest(LAB, version.id) == version
        assert len(await store.blobs(LAB, names)) == 10_000
        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_no_names_are_no_blobs(self, store: Store) -> None:
        assert await store.blobs(LAB, []) == {}

    async def test_adding_no_blobs_is_no_trouble(self, store: Store) -> None:
        await keep(store, LAB, [])

    @_OF_ANY_SIZE
    async def test_the_same_bytes_again_change_nothing(self, store: Store, size: int) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])

        await keep(store, LAB, [replace(blob, content_type="text/plain", title="Another")])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    @_OF_ANY_SIZE
    async def test_racing_adds_of_the_same_bytes_all_succeed(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))

        await asyncio.gather(
            *(keep(item, LAB, [blob]) for item in (store, other_store) for _ in range(10))
        )

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_a_blob_that_no_version_names_is_swept(self, store: Store) -> None:
        blobs = [a_blob() for _ in range(40)]
        await keep(store, LAB, blobs)

        assert await store.sweep_blobs(LAB, before=FOREVER) == 40
        assert await store.blobs(LAB, [blob.sha256 for blob in blobs]) == {}

    async def test_sweeping_again_finds_nothing(self, store: Store) -> None:
        await keep(store, LAB, [a_blob()])
        await store.sweep_blobs(LAB, before=FOREVER)

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_blob_that_a_version_names_is_kept(self, store: Store) -> None:
        named, unnamed = a_blob(), a_blob()
        await keep(store, LAB, [named, unnamed])
        await store.add(LAB, a_version(documents=(named.sha256,)))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1
        assert set(await store.blobs(LAB, [named.sha256, unnamed.sha256])) == {named.sha256}

    async def test_a_blob_that_only_an_old_version_names_is_kept(self, store: Store) -> None:
        blob = a_blob()
        first = a_version(documents=(blob.sha256,))
        await keep(store, LAB, [blob])
        await store.add(LAB, first)
        await store.add(LAB, successor(first, documents=()))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_blob_that_came_after_the_version_that_names_it_is_kept(
        self, store: Store
    ) -> None:
        blob = a_blob()
        await store.add(LAB, a_version(documents=(blob.sha256,)))
        await keep(store, LAB, [blob])

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_version_that_was_refused_keeps_no_blob(self, store: Store) -> None:
        blob, taken = a_blob(), a_version()
        await keep(store, LAB, [blob])
        await store.add(LAB, taken)
        await store.add(LAB, replace(taken, documents=(blob.sha256,)))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1

    async def test_a_fresh_blob_is_not_swept(self, store: Store) -> None:
        moment = now_ms()
        await keep(store, LAB, [a_blob()])

        assert await store.sweep_blobs(LAB, before=moment) == 0

    @_OF_ANY_SIZE
    async def test_a_blob_added_again_counts_as_fresh(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])
        await asyncio.sleep(0.005)
        moment = now_ms()
        await keep(other_store, LAB, [blob])

        assert await store.sweep_blobs(LAB, before=moment) == 0
        assert await store.sweep_blobs(LAB, before=FOREVER) == 1

    @_OF_ANY_SIZE
    async def test_a_swept_blob_can_be_added_again(self, store: Store, size: int) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])
        await store.sweep_blobs(LAB, before=FOREVER)

        await keep(store, LAB, [blob])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    @_OF_ANY_SIZE
    async def test_no_sweep_takes_a_document_from_a_report(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])  # long ago, by a request that went no further
        await asyncio.sleep(0.005)
        grace = now_ms()

        async def publish() -> None:
            await keep(store, LAB, [blob])
            assert await store.add(LAB, a_version(documents=(blob.sha256,)))

        async def sweep() -> None:
            for _ in range(10):
                await other_store.sweep_blobs(LAB, before=grace)

        await asyncio.gather(sweep(), publish(), sweep())

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}


class _AccessContract:
    """Tenants, clients and signing keys."""

    async def test_a_tenant_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        tenant = replace(Tenant.new("Labor Süd 🩺", created=5), disabled=True)
        await store.put_tenant(tenant)

        assert await reader.tenant(tenant.id) == tenant
        assert await reader.tenants() == [tenant]

    async def test_a_tenant_put_again_is_replaced(self, store: Store) -> None:
        tenant = Tenant.new("before", created=5)
        await store.put_tenant(tenant)

        await store.put_tenant(replace(tenant, name="after", disabled=True))

        assert await store.tenants() == [replace(tenant, name="after", disabled=True)]

    async def test_tenants_are_listed_oldest_first(self, store: Store) -> None:
        tenants = [Tenant.new("t", created=created) for created in (30, 10, 20)]
        for tenant in tenants:
            await store.put_tenant(tenant)
        await store.put_tenant(tenants[1])

        assert [tenant.created for tenant in await store.tenants()] == [10, 20, 30]

    async def test_a_client_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        client = a_client(
            name="Système\n",
            secrets=(ClientSecret(bytes(range(32))), ClientSecret(b"\xff" * 32, 7)),
            scopes=("system/DiagnosticReport.write", "system/*.read"),
            disabled=True,
        )
        await store.put_client(client)

        assert await reader.client(client.id) == client
        assert await reader.clients() == [client]

    async def test_a_client_put_again_is_replaced(self, store: Store) -> None:
        client = a_client(secrets=(ClientSecret(b"a"),), scopes=("x",))
        await store.put_client(client)

        await store.put_client(replace(client, secrets=(ClientSecret(b"b"),), scopes=()))

        assert await store.clients() == [replace(client, secrets=(ClientSecret(b"b"),), scopes=())]

    async def test_a_client_is_replaced_as_it_was_read(self, store: Store) -> None:
        client = a_client(
            secrets=(ClientSecret(b"a", 7), ClientSecret(b"b")), scopes=("system/*.rs",)
        )
        await store.put_client(client)

        assert await store.replace_client(replace(client, disabled=True), over=client)

        assert await store.client(client.id) == replace(client, disabled=True)

    async def test_a_client_that_has_changed_meanwhile_is_not_replaced(self, store: Store) -> None:
        client = a_client()
        disabled = replace(client, disabled=True)
        await store.put_client(disabled)

        assert not await store.replace_client(replace(client, name="other"), over=client)

        assert await store.client(client.id) == disabled

    async def test_an_unknown_client_is_not_replaced(self, store: Store) -> None:
        client = a_client()

        assert not await store.replace_client(client, over=client)

        assert await store.client(client.id) is None

    async def test_of_racing_replacements_of_a_client_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        client = a_client()
        await store.put_client(client)

        racing = [
            item.replace_client(replace(client, name=str(number)), over=client)
            for number, item in enumerate((store, other_store, store, other_store))
        ]
        assert sorted(await asyncio.gather(*racing)) == [False, False, False, True]

    async def test_clients_are_listed_oldest_first_of_all_or_of_one_tenant(
        self, store: Store
    ) -> None:
        for created, tenant in ((3, LAB), (1, OTHER), (2, LAB)):
            await store.put_client(a_client(created=created, tenant=tenant))

        assert [client.created for client in await store.clients()] == [1, 2, 3]
        assert [client.created for client in await store.clients(tenant=LAB)] == [2, 3]
        assert await store.clients(tenant=new_id()) == []

    async def test_unknown_access_records_are_none(self, store: Store) -> None:
        assert await store.tenant(new_id()) is None
        assert await store.client(new_id()) is None
        assert await store.signing_keys("sandbox") == []

    async def test_keys_come_back_as_they_were_put_oldest_first_in_their_environment(
        self, store: Store, other_store: Store
    ) -> None:
        old = a_key("a", created=2, private_pem=bytes(range(256)), retired=9)
        new = a_key("b", created=1, algorithm="RS256")
        await store.put_signing_key(old)
        await store.put_signing_key(new)
        await store.put_signing_key(a_key("c", environment="production"))

        assert await other_store.signing_keys("sandbox") == [new, old]

    async def test_a_key_put_again_is_replaced(self, store: Store) -> None:
        await store.put_signing_key(a_key("a"))

        await store.put_signing_key(a_key("a", retired=4))

        assert await store.signing_keys("sandbox") == [a_key("a", retired=4)]

    async def test_rotation_adds_a_key_and_retires_the_others(self, store: Store) -> None:
        retired, other = a_key("a", retired=2), a_key("p", environment="production")
        for key in (retired, a_key("b"), a_key("c"), other):
            await store.put_signing_key(key)
        new = a_key("d", created=50)

        assert await store.rotate_signing_key(new, expected=["c", "b"]) is True
        keys = await store.signing_keys("sandbox")
        assert keys == [retired, a_key("b", retired=50), a_key("c", retired=50), new]
        assert await store.signing_keys("production") == [other]

    async def test_the_first_key_is_added_by_a_rotation_from_none(self, store: Store) -> None:
        assert await store.rotate_signing_key(a_key("a"), expected=[]) is True
        assert await store.signing_keys("sandbox") == [a_key("a")]

    @pytest.mark.parametrize("expected", [[], ["b"], ["a", "b"], ["old"], ["a", "old"]])
    async def test_a_rotation_that_expects_other_keys_does_nothing(
        self, store: Store, expected: list[str]
    ) -> None:
        keys = [a_key("a"), a_key("old", retired=3)]
        for key in keys:
            await store.put_signing_key(key)

        assert await store.rotate_signing_key(a_key("new"), expected=expected) is False
        assert await store.signing_keys("sandbox") == keys

    async def test_of_racing_rotations_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        await store.put_signing_key(a_key("first"))

        rotated = await asyncio.gather(
            *(
                item.rotate_signing_key(a_key(f"{n}", created=5 + n), expected=["first"])
                for n, item in enumerate([store, other_store] * 10)
            )
        )

        assert rotated.count(True) == 1
        unretired = [key.kid for key in await store.signing_keys("sandbox") if not key.retired]
        assert unretired == [str(rotated.index(True))]

    async def test_access_records_are_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        tenant, client = Tenant.new("Lab", created=1), a_client()
        await store.put_tenant(tenant)
        await store.put_client(client)
        await store.put_signing_key(a_key("a"))
        await store.stop()

        again = await reopen()

        assert await again.tenant(tenant.id) == tenant
        assert await again.client(client.id) == client
        assert await again.signing_keys("sandbox") == [a_key("a")]


class _InventoryContract:
    """Everything in the store, across all tenants."""

    async def test_a_walk_meets_every_version_of_every_tenant_in_order(
        self, store: Store, reader: Store
    ) -> None:
        first, other = a_version(), a_version()
        await store.add(LAB, first)
        await store.add(OTHER, other)
        await store.add(LAB, successor(first))
        ours = {first.id, other.id}

        met = [(tenant, version) async for tenant, version in _walk(reader, limit=2)]

        keys = [(version.id, version.version) for _tenant, version in met]
        assert keys == sorted(set(keys))
        assert {(tenant, version) for tenant, version in met if version.id in ours} == {
            (LAB, first),
            (LAB, successor(first)),
            (OTHER, other),
        }

    async def test_a_walk_ends_with_a_page_that_is_not_full(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.scan(after=("g", 0)) == []

    async def test_no_page_of_a_walk_holds_many_large_versions(self, store: Store) -> None:
        large = [a_version(body=b"x" * (MAX_PAGE_BYTES // 2)) for _ in range(3)]
        for version in large:
            await store.add(LAB, version)
        ours = {version.id for version in large}

        after, held = ("", 0), list[int]()
        while page := await store.scan(after=after, limit=1000):
            held.append(len([version for _tenant, version in page if version.id in ours]))
            after = (page[-1][1].id, page[-1][1].version)

        assert max(held) < sum(held) == 3

    @pytest.mark.parametrize("every_version", [False, True])
    @pytest.mark.parametrize("of_it", ["body", "parts"])
    async def test_a_search_that_finds_large_versions_has_shorter_pages(
        self, store: Store, *, of_it: str, every_version: bool
    ) -> None:
        much = {of_it: b"x" * (MAX_PAGE_BYTES // 2 - 5000)}
        large = [a_version(updated=n, **much) for n in range(5)]
        for version in large:
            await store.add(LAB, version)
        wanted = replace(query(limit=4), every_version=every_version)

        first = await store.search(LAB, wanted)
        after = sort_key(wanted.order, first.versions[-1])
        second = await store.search(LAB, replace(wanted, limit=1, after=after))

        assert 0 < len(first.versions) < 4
        assert first.more
        found = (*first.versions, *second.versions)
        assert found == tuple(large[::-1][: len(found)])

    async def test_a_store_is_the_same_however_often_it_is_opened(
        self, store: Store, other_store: Store
    ) -> None:
        assert await store.identity() == await other_store.identity()

    async def test_a_version_more_is_counted(self, store: Store) -> None:
        before = await store.count()
        version = a_version()

        await store.add(LAB, version)
        await store.add(LAB, successor(version))

        assert await store.count() == before + 2


async def _walk(store: Store, *, limit: int) -> AsyncIterator[tuple[str, Version]]:
    after = ("", 0)
    while page := await store.scan(after=after, limit=limit):
        for tenant, version in page:
            yield tenant, version
            after = (version.id, version.version)


class StoreContract(
    _AddingContract,
    _ReadingContract,
    _SearchingContract,
    _FindingContract,
    _ListingContract,
    _RetakingContract,
    _TenancyContract,
    _BlobContract,
    _AccessContract,
    _InventoryContract,
    WebhookContract,
):
    """Every promise of `fhirpub.storage.store`; see the module for how to inherit it."""

    @pytest.fixture(params=["same", "other"])
    def reader(self, request: pytest.FixtureRequest, store: Store, other_store: Store) -> Store:
        """Return the store that was written to, then the other."""
        return store if request.param == "same" else other_store
