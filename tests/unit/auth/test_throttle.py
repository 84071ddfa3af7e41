from __future__ import annotations

import asyncio

import pytest

from fhirpub.auth import throttle as throttle_module
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


async def retry_after(throttle: Throttle) -> int:
    with pytest.raises(Throttled) as raised:
        async with throttle.attempt("c", "a"):
            pass
    return raised.value.retry_after


@pytest.mark.parametrize(
    ("passed", "seconds"), [(0, 60), (0.001, 60), (1, 59), (58.999, 2), (59, 1), (59.999, 1)]
)
async def test_the_wait_is_that_of_the_oldest_failure_in_whole_seconds(
    passed: float, seconds: int
) -> None:
    clock = HandClock()
    throttle = Throttle(1, clock=clock)
    await attempt(throttle, WRONG)

    clock.pass_seconds(passed)

    assert await retry_after(throttle) == seconds


async def test_a_failure_that_ends_while_it_is_counted_asks_for_a_second() -> None:
    moments = iter([0, 0, 59_999, 60_000])
    throttle = Throttle(1, clock=lambda: next(moments))
    await attempt(throttle, WRONG)

    assert await retry_after(throttle) == 1


async def test_each_failure_ends_after_its_own_minute() -> None:
    clock = HandClock()
    throttle = Throttle(3, clock=clock)
    for _ in range(3):
        await attempt(throttle, WRONG)
        clock.pass_seconds(10)
    clock.pass_seconds(30)

    outcomes = [await attempt(throttle, WRONG) for _ in range(2)]

    assert outcomes == ["TokenRefused", "Throttled"]
    assert await retry_after(throttle) == 10


async def test_a_right_secret_does_not_end_the_count_of_failures() -> None:
    throttle = Throttle(3, clock=HandClock())

    outcomes = [await attempt(throttle, problem) for problem in (WRONG, WRONG, None, WRONG, None)]

    assert outcomes[-2:] == ["TokenRefused", "Throttled"]


async def test_a_client_whose_failures_are_over_is_forgotten_when_it_succeeds() -> None:
    clock = HandClock()
    throttle = Throttle(4, clock=clock)
    for _ in range(3):
        await attempt(throttle, WRONG)
    clock.pass_seconds(60)

    await attempt(throttle, None)

    assert not throttle._pairs


async def test_failures_are_remembered_while_right_secrets_come() -> None:
    throttle = Throttle(2, clock=HandClock())
    await attempt(throttle, WRONG)

    await attempt(throttle, None)

    assert list(throttle._pairs) == [("c", "a")]


async def test_names_that_differ_within_64_characters_are_counted_apart() -> None:
    throttle = Throttle(1, clock=HandClock())
    await attempt(throttle, WRONG, client="x" * 63 + "a", address="y" * 63 + "a")

    assert (
        await attempt(throttle, None, client="x" * 63 + "b", address="y" * 63 + "a") == "granted"
    )
    assert (
        await attempt(throttle, None, client="x" * 63 + "a", address="y" * 63 + "b") == "granted"
    )


async def test_names_that_differ_later_share_a_count() -> None:
    throttle = Throttle(1, clock=HandClock())
    await attempt(throttle, WRONG, client="x" * 64 + "a", address="y" * 64 + "a")

    outcome = await attempt(throttle, None, client="x" * 64 + "b", address="y" * 64 + "b")

    assert outcome == "Throttled"


async def test_a_pair_that_goes_on_failing_is_not_the_one_that_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throttle_module, "_MAX_PAIRS", 2)
    throttle = Throttle(2, clock=HandClock())

    for client in ("a", "b", "a", "c"):
        await attempt(throttle, WRONG, client=client)

    assert [client for client, _ in throttle._pairs] == ["a", "c"]


async def test_as_many_attempts_run_at_once_as_may_still_fail() -> None:
    throttle = Throttle(3, clock=HandClock())
    await attempt(throttle, WRONG)
    held = [throttle.attempt("c", "a") for _ in range(2)]
    for one in held:
        await one.__aenter__()
    third = asyncio.create_task(attempt(throttle, None))
    await asyncio.sleep(0)

    assert throttle._pairs["c", "a"].under_way == 2
    await held[0].__aexit__(None, None, None)
    assert await third == "granted"
    await held[1].__aexit__(None, None, None)


async def test_a_caller_that_goes_away_amid_an_attempt_frees_its_place() -> None:
    throttle = Throttle(1, clock=HandClock())
    started = asyncio.Event()

    async def hang() -> None:
        async with throttle.attempt("c", "a"):
            started.set()
            await asyncio.Event().wait()

    hanging = asyncio.create_task(hang())
    await started.wait()
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)

    assert await attempt(throttle, None) == "granted"
    assert not throttle._pairs


async def test_an_attempt_that_succeeds_lets_no_more_run_beside_the_others() -> None:
    throttle, first, second = Throttle(2, clock=HandClock()), asyncio.Event(), asyncio.Event()
    running: list[str] = []

    async def run(name: str, end: asyncio.Event) -> None:
        async with throttle.attempt("c", "a"):
            running.append(name)
            await end.wait()

    tasks = [asyncio.create_task(run("1", first)), asyncio.create_task(run("2", second))]
    await asyncio.sleep(0)
    first.set()
    await tasks[0]
    tasks += [asyncio.create_task(run(name, second)) for name in ("3", "4")]
    for _ in range(5):
        await asyncio.sleep(0)

    assert running == ["1", "2", "3"]
    second.set()
    await asyncio.gather(*tasks)
