"""A published key set is fetched when it is needed, and kept as long as its client allows."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.assertions.published_keys import (
    KeysNotFetched,
    PublishedKeys,
    kept_seconds,
)
from fhirpub.errors import Throttled
from tests.unit.auth.assertions.publishing import URL, Answer, Site, kids
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import HandClock

BOTH = key_set(pair("ES384", "a"), pair("RS384", "b"))


async def test_a_set_is_fetched_once_in_five_minutes(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    assert [await kids(keys), await kids(keys)] == ["a", "a"]
    clock.pass_seconds(299)
    await kids(keys)
    assert len(site.asked) == 1
    clock.pass_seconds(1)
    await kids(keys)
    assert site.asked == [(URL, "t")] * 2


@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [
        ("", 300),
        ("private", 300),
        ("max-age=60", 60),
        ("public, max-age=60", 60),
        ("Max-Age = 60", 60),
        ('max-age="60"', 60),
        ("max-age=60, max-age=30", 30),
        ("max-age=0", 0),
        ("max-age=86400", 3600),
        ("max-age=-1", 300),
        ("no-store", 0),
        ("max-age=60, no-cache", 0),
        ('no-cache="x", max-age=60', 0),
        ("s-maxage=5", 300),
    ],
)
def test_a_set_is_kept_as_long_as_its_header_says_and_an_hour_at_most(
    cache_control: str, seconds: int
) -> None:
    assert kept_seconds(cache_control) == seconds


async def test_a_set_that_must_not_be_kept_is_fetched_each_time(
    keys: PublishedKeys, site: Site
) -> None:
    site.answer = Answer(cache_control="no-store")

    for _ in range(3):
        await kids(keys)

    assert len(site.asked) == 3


async def test_a_new_key_is_found_within_half_a_minute(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    site.answer = Answer(BOTH)

    assert await kids(keys, "b") == "a"
    clock.pass_seconds(30)
    assert await kids(keys, "b") == "ab"


async def test_unknown_keys_cause_one_fetch_in_half_a_minute(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    for number in range(100):
        await kids(keys, f"unknown-{number}")
        clock.pass_seconds(0.3)

    assert len(site.asked) == 1


async def test_all_who_need_a_set_wait_for_one_fetch(keys: PublishedKeys, site: Site) -> None:
    site.open.clear()
    waiting = [asyncio.create_task(kids(keys)) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    site.open.set()

    assert await asyncio.gather(*waiting[1:]) == ["a"] * 19
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(problem="E_CONNECT"), "E_CONNECT"),
        (Answer(body=b"<html>"), 'must be a JSON Web Key Set: {"keys": [...]}'),
        (Answer(body=b" " * 65_537), "has more than 65536 bytes"),
    ],
)
async def test_what_cannot_be_fetched_is_asked_for_again_after_ten_seconds(
    keys: PublishedKeys, site: Site, clock: HandClock, answer: Answer, reason: str
) -> None:
    site.answer = answer
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(KeysNotFetched):
                await kids(keys)
            clock.pass_seconds(3.3)
    assert len(site.asked) == 1
    assert [(log["event"], log["reason"], log["host"]) for log in logs] == [
        ("keys not fetched", reason, "ward.example.org")
    ]

    site.answer = Answer()
    clock.pass_seconds(0.1)
    assert await kids(keys) == "a"


async def test_a_set_that_is_still_valid_outlives_a_failure_to_fetch_it_again(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    site.answer = Answer(problem="E_TIMEOUT")

    clock.pass_seconds(200)
    assert await kids(keys, "unknown") == "a"
    clock.pass_seconds(99)
    assert await kids(keys) == "a"
    clock.pass_seconds(1)
    with pytest.raises(KeysNotFetched):
        await kids(keys)


async def test_a_clock_that_goes_back_ends_what_is_kept(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    clock.pass_seconds(-1)
    await kids(keys)

    assert len(site.asked) == 2


async def test_tenants_share_no_set_and_slow_sites_of_one_stop_no_other(
    keys: PublishedKeys, site: Site
) -> None:
    site.open.clear()
    slow = [
        asyncio.create_task(kids(keys, url=f"{URL}?{number}", tenant="slow"))
        for number in range(4)
    ]
    await asyncio.sleep(0)

    with pytest.raises(Throttled):
        await kids(keys, url=URL, tenant="slow")
    other = asyncio.create_task(kids(keys, tenant="other"))
    await asyncio.sleep(0)
    site.open.set()

    assert await other == "a"
    assert await asyncio.gather(*slow) == ["a"] * 4
    assert site.asked[-1] == (URL, "other")


async def test_a_fetch_in_progress_ends_with_the_service(keys: PublishedKeys, site: Site) -> None:
    site.open.clear()
    waiting = asyncio.create_task(kids(keys))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    await keys.stop()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_known_keys_outlive_a_failure_for_as_long_as_they_may(
    site: Site, clock: HandClock
) -> None:
    lasting = PublishedKeys(site.fetch, clock=clock, stale_seconds=3_600)
    await kids(lasting)
    site.answer = Answer(problem="E_CONNECT")
    clock.pass_seconds(301)
    assert await kids(lasting) == "a"
    clock.pass_seconds(3_598)
    assert await kids(lasting) == "a"
    clock.pass_seconds(2)
    with pytest.raises(KeysNotFetched):
        await kids(lasting)


async def test_only_the_first_failure_is_waited_for(site: Site, clock: HandClock) -> None:
    lasting = PublishedKeys(site.fetch, clock=clock, stale_seconds=3_600)
    await kids(lasting)
    site.answer = Answer(problem="E_CONNECT")
    clock.pass_seconds(301)
    await kids(lasting)
    site.open.clear()
    clock.pass_seconds(11)
    async with asyncio.timeout(20):
        assert [await kids(lasting), await kids(lasting)] == ["a", "a"]
    await asyncio.sleep(0)
    assert len(site.asked) == 3
    await lasting.stop()


async def test_a_key_that_was_taken_back_ends_with_the_next_fetch(
    site: Site, clock: HandClock
) -> None:
    lasting = PublishedKeys(site.fetch, clock=clock, stale_seconds=3_600)
    await kids(lasting)
    site.answer = Answer(key_set(pair("RS384", "b")))
    clock.pass_seconds(301)

    assert await kids(lasting) == "b"


async def test_a_set_without_a_key_is_one(keys: PublishedKeys, site: Site) -> None:
    site.answer = Answer(b'{"keys": []}')

    assert await kids(keys) == ""
