"""One read of the configuration of a provider serves all who sign in at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from fhirpub.auth.assertions import published_keys
from fhirpub.console.openid import OpenIdProvider, ProviderUnavailable
from fhirpub.console.provider_client import Document
from fhirpub.testing.clock import HandClock
from tests.unit.auth.assertions.signing import NOW
from tests.unit.console.test_openid import CONFIG, REQUEST, Answers
from tests.unit.console.test_openid_answers import Counted


class Held(Answers):
    """A provider that answers once it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked = 0

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        self.asked += 1
        await self.gate.wait()
        return await super().__call__(method, url, form=form, headers=headers)


def a_provider(answers: Answers) -> OpenIdProvider:
    clock = HandClock(NOW * 1000)
    return OpenIdProvider(CONFIG, redirect="https://x/back", request=answers, clock=clock)


async def leaving(provider: OpenIdProvider) -> asyncio.Task[str]:
    task = asyncio.create_task(provider.address(REQUEST))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_all_who_sign_in_at_once_wait_for_one_read() -> None:
    answers = Held()
    provider = a_provider(answers)
    waiting = [await leaving(provider) for _ in range(3)]
    answers.gate.set()

    assert len(set(await asyncio.gather(*waiting))) == 1
    assert answers.asked == 1


async def test_who_goes_away_leaves_the_read_to_the_others() -> None:
    answers = Held()
    provider = a_provider(answers)
    first, second = await leaving(provider), await leaving(provider)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    answers.gate.set()

    assert await second
    assert answers.asked == 1


class Broken(Answers):
    """A provider whose first answer is lost by a fault of the service."""

    is_broken = True

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        if self.is_broken:
            self.is_broken = False
            raise RuntimeError("a fault")
        return await super().__call__(method, url, form=form, headers=headers)


async def test_after_a_fault_the_next_sign_in_reads_again() -> None:
    provider = a_provider(Broken())
    with pytest.raises(RuntimeError):
        await provider.address(REQUEST)

    assert await provider.address(REQUEST)


async def test_keys_that_may_not_be_fetched_now_make_the_provider_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(published_keys, "_MAX_FETCHES", 0)

    with pytest.raises(ProviderUnavailable, match="its keys"):
        await a_provider(Answers()).identify("c", REQUEST)


async def test_keys_that_are_known_are_not_fetched_for_each_sign_in() -> None:
    answers, clock = Counted(), HandClock(NOW * 1000)
    provider = OpenIdProvider(CONFIG, redirect="https://x/back", request=answers, clock=clock)
    for _ in range(3):
        await provider.identify("c", REQUEST)
        clock.forward(seconds=31)

    assert answers.paths.count("/keys") == 1
