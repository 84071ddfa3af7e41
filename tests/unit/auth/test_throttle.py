from __future__ import annotations

import asyncio

import pytest

from fhirpub.auth.throttle import Throttle
from fhirpub.errors import StoreUnavailable, Throttled, TokenRefused
from tests.unit.auth.conftest import HandClock


async def attempt(
    throttle: Throttle, problem: Exception | None, *, client: str = "c", address: str = "a"
) -> str:
    try:
        async with throttle.attempt(client, address):
            await asyncio.sleep(0)
            if problem is not None:
                raise problem
    except (Throttled, TokenRefused, StoreUnavailable) as raised:
        return type(raised).__name__
    return "granted"


WRONG = TokenRefused("invalid_client", "no")


async def test_after_the_limit_even_a_right_secret_has_to_wait_out_the_minute() -> None:
    clock = HandClock()
    throttle = Throttle(3, clock=clock)
    for _ in range(3):
        assert await attempt(throttle, WRONG) == "TokenRefused"
        clock.pass_seconds(10)

    with pytest.raises(Throttled) as raised:
        async with throttle.attempt("c", "a"):
            pass

    assert raised.value.retry_after == 30
    clock.pass_seconds(30)
    assert await attempt(throttle, None) == "granted"


async def test_failures_in_the_future_lock_no_client_out_once_the_clock_is_set_back() -> None:
    clock = HandClock()
    throttle = Throttle(1, clock=clock)
    await attempt(throttle, WRONG)

    clock.pass_seconds(-3_600)

    assert await attempt(throttle, None) == "granted"


async def test_other_clients_and_other_addresses_are_not_affected() -> None:
    throttle = Throttle(1, clock=HandClock())
    await attempt(throttle, WRONG)

    assert await attempt(throttle, None) == "Throttled"
    assert await attempt(throttle, None, client="other") == "granted"
    assert await attempt(throttle, None, address="other") == "granted"


async def test_attempts_at_once_cannot_outrun_the_limit() -> None:
    throttle = Throttle(10, clock=HandClock())

    outcomes = await asyncio.gather(*(attempt(throttle, WRONG) for _ in range(200)))

    assert outcomes.count("TokenRefused") == 10
    assert outcomes.count("Throttled") == 190


async def test_right_secrets_at_once_are_never_refused() -> None:
    throttle = Throttle(10, clock=HandClock())

    outcomes = await asyncio.gather(*(attempt(throttle, None) for _ in range(200)))

    assert outcomes == ["granted"] * 200
    assert not throttle._pairs


async def test_a_store_that_is_away_counts_as_no_failed_attempt() -> None:
    throttle = Throttle(1, clock=HandClock())

    for _ in range(3):
        assert await attempt(throttle, StoreUnavailable("away")) == "StoreUnavailable"

    assert await attempt(throttle, None) == "granted"


async def test_a_caller_that_gives_up_waiting_leaves_the_others_their_turn() -> None:
    throttle = Throttle(1, clock=HandClock())
    held = throttle.attempt("c", "a")
    await held.__aenter__()
    waiting = [asyncio.create_task(attempt(throttle, None)) for _ in range(2)]
    await asyncio.sleep(0)

    waiting[0].cancel()
    await held.__aexit__(None, None, None)

    assert await waiting[1] == "granted"


async def test_an_attempt_that_waited_counts_for_later_ones() -> None:
    throttle = Throttle(1, clock=HandClock())
    held = throttle.attempt("c", "a")
    await held.__aenter__()
    waiting = asyncio.create_task(attempt(throttle, WRONG))
    await asyncio.sleep(0)

    await held.__aexit__(None, None, None)
    assert await waiting == "TokenRefused"

    assert await attempt(throttle, None) == "Throttled"


async def test_no_limit_counts_nothing() -> None:
    throttle = Throttle(0, clock=HandClock())

    outcomes = [await attempt(throttle, WRONG) for _ in range(50)]

    assert set(outcomes) == {"TokenRefused"}
    assert not throttle._pairs


async def test_memory_is_bounded_however_many_names_are_tried() -> None:
    throttle = Throttle(10, clock=HandClock())

    for number in range(10_050):
        await attempt(throttle, WRONG, client=f"{number}-" + "x" * 1000)

    assert len(throttle._pairs) == 10_000
    assert max(len(client) for client, _ in throttle._pairs) == 64
