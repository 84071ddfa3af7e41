from __future__ import annotations

import asyncio
import gc

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.web import readiness as module
from fhirpub.web.readiness import Readiness


class Check:
    """A check of a store that can be made to fail; it counts its calls."""

    def __init__(self) -> None:
        self.made = 0
        self.fails = False

    async def __call__(self) -> None:
        self.made += 1
        await asyncio.sleep(0.01)
        if self.fails:
            raise StoreUnavailable("made to fail")


async def test_a_good_answer_is_used_again_within_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_FRESH_SECONDS", 60.0)  # more than this process rests
    check = Check()
    readiness = Readiness(check)

    for _ in range(5):
        await readiness.confirm()

    assert check.made == 1


async def test_a_good_answer_is_not_used_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check()
    readiness = Readiness(check)
    await readiness.confirm()
    loop = asyncio.get_running_loop()
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + 1.05)
    check.fails = True

    with pytest.raises(StoreUnavailable):
        await readiness.confirm()


async def test_concurrent_callers_share_one_check() -> None:
    check = Check()
    readiness = Readiness(check)

    await asyncio.gather(*(readiness.confirm() for _ in range(20)))

    assert check.made == 1


async def test_a_failure_is_raised_in_all_waiting_callers_and_then_forgotten() -> None:
    check = Check()
    check.fails = True
    readiness = Readiness(check)

    outcomes = await asyncio.gather(
        *(readiness.confirm() for _ in range(3)), return_exceptions=True
    )
    check.fails = False
    await readiness.confirm()

    assert [type(base_exception) for base_exception in outcomes] == [StoreUnavailable] * 3
    assert check.made == 2


async def test_a_caller_that_goes_away_cancels_no_other() -> None:
    check = Check()
    readiness = Readiness(check)
    leaving = asyncio.create_task(readiness.confirm())
    staying = asyncio.create_task(readiness.confirm())
    await asyncio.sleep(0)

    leaving.cancel()

    await staying
    assert check.made == 1


async def test_how_long_a_check_took_is_known_afterwards() -> None:
    readiness = Readiness(Check())
    assert readiness.seconds == 0

    await readiness.confirm()

    assert 0.009 < readiness.seconds < 5


@pytest.mark.parametrize("ends", ["fails", "is cancelled"])
async def test_a_check_that_all_have_left_ends_in_silence(ends: str) -> None:
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: problems.append(what))
    check = Check()
    check.fails = True
    readiness = Readiness(check)
    leaving = asyncio.create_task(readiness.confirm())
    await asyncio.sleep(0)
    checking = readiness._checking
    assert checking is not None
    leaving.cancel()
    await asyncio.sleep(0)
    if ends == "is cancelled":
        checking.cancel()
    await asyncio.wait([checking])
    del checking, leaving
    await asyncio.sleep(0)
    gc.collect()

    assert problems == []
