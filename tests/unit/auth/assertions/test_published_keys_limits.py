"""How many key sets are kept and fetched at once, and for how long old ones are used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.assertions import published_keys
from fhirpub.auth.assertions.published_keys import KeysNotFetched, PublishedKeys
from fhirpub.errors import Throttled
from tests.unit.auth.assertions.publishing import URL, Answer, Site, kids
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import HandClock

AWAY = Answer(problem="E_CONNECT")


@pytest.fixture
async def lasting(site: Site, clock: HandClock) -> AsyncIterator[PublishedKeys]:
    """What uses old keys for an hour more."""
    made = PublishedKeys(site.fetch, clock=clock, stale_seconds=3_600)
    yield made
    await made.stop()


@pytest.fixture
async def old(lasting: PublishedKeys, site: Site, clock: HandClock) -> PublishedKeys:
    """What uses the key that it has fetched before its site went away."""
    await kids(lasting)
    site.answer = AWAY
    clock.pass_seconds(300)
    await kids(lasting)
    return lasting


async def test_thirty_two_fetches_run_at_a_time(keys: PublishedKeys, site: Site) -> None:
    site.open.clear()
    slow = [asyncio.create_task(kids(keys, tenant=f"t{number}")) for number in range(32)]
    await asyncio.sleep(0)

    with pytest.raises(Throttled) as refused:
        await kids(keys, tenant="one more")

    assert refused.value.retry_after == 1
    site.open.set()
    assert await asyncio.gather(*slow) == ["a"] * 32


async def test_four_fetches_run_at_a_time_for_a_tenant(keys: PublishedKeys, site: Site) -> None:
    site.open.clear()
    slow = [asyncio.create_task(kids(keys, url=f"{URL}?{number}")) for number in range(4)]
    await asyncio.sleep(0)

    with pytest.raises(Throttled) as refused:
        await kids(keys, url=f"{URL}?4")

    assert refused.value.retry_after == 1
    site.open.set()
    await asyncio.gather(*slow)
    assert await kids(keys, url=f"{URL}?4") == "a"


async def test_who_waits_for_a_fetch_that_runs_takes_no_place(
    keys: PublishedKeys, site: Site
) -> None:
    site.open.clear()
    slow = [asyncio.create_task(kids(keys, url=f"{URL}?{number % 4}")) for number in range(8)]
    await asyncio.sleep(0)
    site.open.set()

    assert await asyncio.gather(*slow) == ["a"] * 8
    assert len(site.asked) == 4


async def test_the_set_that_was_fetched_first_is_forgotten_first(
    keys: PublishedKeys, site: Site, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_keys, "_MAX_SETS", 2)
    for tenant in ("a", "b"):
        await kids(keys, tenant=tenant)
    clock.pass_seconds(300)
    await kids(keys, tenant="a")
    await kids(keys, tenant="c")
    site.asked.clear()

    for tenant in ("a", "c", "b"):
        await kids(keys, tenant=tenant)

    assert site.asked == [(URL, "b")]


def test_a_thousand_sets_are_kept() -> None:
    assert published_keys._MAX_SETS == 1_000


async def test_a_site_that_does_not_answer_is_no_longer_waited_for(
    keys: PublishedKeys, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert published_keys._PATIENCE_SECONDS == 5
    monkeypatch.setattr(published_keys, "_PATIENCE_SECONDS", 0)
    site.open.clear()

    with capture_logs() as logs, pytest.raises(KeysNotFetched):
        await kids(keys)

    assert logs == [
        {
            "event": "keys not fetched",
            "log_level": "warning",
            "tenant": "t",
            "host": "ward.example.org",
            "reason": "timeout",
        }
    ]


async def test_a_site_that_did_not_answer_is_asked_again_after_ten_seconds(
    keys: PublishedKeys, site: Site, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_keys, "_PATIENCE_SECONDS", 0)
    site.open.clear()
    for seconds in (0, 9.999, 0.001):
        clock.pass_seconds(seconds)
        with pytest.raises(KeysNotFetched):
            await kids(keys)

    assert len(site.asked) == 2


async def test_an_unknown_key_is_looked_for_again_after_half_a_minute_and_no_sooner(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    clock.pass_seconds(29.999)
    await kids(keys, "b")
    assert len(site.asked) == 1
    clock.pass_seconds(0.001)
    await kids(keys, "b")

    assert len(site.asked) == 2


async def test_a_known_key_is_not_looked_for_after_half_a_minute(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    clock.pass_seconds(30)
    await kids(keys)

    assert len(site.asked) == 1


async def test_without_a_time_for_old_keys_they_end_with_the_set(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(keys)
    site.answer = AWAY
    clock.pass_seconds(300)

    with pytest.raises(KeysNotFetched):
        await kids(keys)


async def test_old_keys_are_used_until_their_last_millisecond(
    lasting: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(lasting)
    site.answer = AWAY
    clock.pass_seconds(3_899.999)
    assert await kids(lasting) == "a"
    clock.pass_seconds(0.001)

    with pytest.raises(KeysNotFetched):
        await kids(lasting)


async def test_a_failure_at_the_end_of_old_keys_is_one(
    lasting: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(lasting)
    site.answer = AWAY
    clock.pass_seconds(3_900)

    with pytest.raises(KeysNotFetched):
        await kids(lasting)


async def test_while_a_site_is_away_it_is_asked_every_ten_seconds(
    old: PublishedKeys, site: Site, clock: HandClock
) -> None:
    asked = []
    for seconds in (9.999, 0.001, 9.999, 0.001):
        clock.pass_seconds(seconds)
        await kids(old)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked.append(len(site.asked))

    assert asked == [2, 3, 3, 4]


async def test_old_keys_serve_while_all_fetches_are_taken(
    old: PublishedKeys, site: Site, clock: HandClock
) -> None:
    clock.pass_seconds(10)
    site.open.clear()
    slow = [asyncio.create_task(kids(old, url=f"{URL}?{number}")) for number in range(4)]
    await asyncio.sleep(0)

    assert await kids(old) == "a"

    await old.stop()
    await asyncio.gather(*slow, return_exceptions=True)


async def test_a_key_that_is_not_among_the_old_ones_waits_for_the_site(
    old: PublishedKeys, site: Site, clock: HandClock
) -> None:
    site.answer = Answer(key_set(pair("RS384", "b")))
    clock.pass_seconds(30)

    assert await kids(old, "b") == "b"


async def test_a_site_that_is_back_ends_the_use_of_old_keys(
    old: PublishedKeys, site: Site, clock: HandClock
) -> None:
    site.answer = Answer(key_set(pair("RS384", "b")))
    clock.pass_seconds(10)
    await kids(old)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert await kids(old) == "b"


async def test_old_keys_of_one_tenant_serve_no_other(
    lasting: PublishedKeys, site: Site, clock: HandClock
) -> None:
    await kids(lasting)
    site.answer = AWAY

    with pytest.raises(KeysNotFetched):
        await kids(lasting, tenant="other")


@pytest.mark.parametrize(("cache_control", "asked"), [("max-age=3601", 1), ("max-age=3599", 2)])
async def test_an_hour_is_the_longest_that_a_set_is_kept(
    keys: PublishedKeys, site: Site, clock: HandClock, cache_control: str, asked: int
) -> None:
    site.answer = Answer(cache_control=cache_control)
    await kids(keys)
    clock.pass_seconds(3_599)
    await kids(keys)
    assert len(site.asked) == asked


async def test_what_was_fetched_slowly_is_as_old_as_the_question(
    keys: PublishedKeys, site: Site, clock: HandClock
) -> None:
    site.open.clear()
    waiting = asyncio.create_task(kids(keys))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.pass_seconds(4)
    site.open.set()
    await waiting
    clock.pass_seconds(296)
    await kids(keys)

    assert len(site.asked) == 2


async def test_while_a_site_is_away_unknown_keys_cause_no_more_fetches(
    old: PublishedKeys, site: Site, clock: HandClock
) -> None:
    clock.pass_seconds(9.999)

    assert [await kids(old, kid) for kid in ("b", "c")] == ["a", "a"]
    assert len(site.asked) == 2
