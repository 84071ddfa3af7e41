"""An assertion is used up by the first use of it, and no owner fills the store with them."""

from __future__ import annotations

import pytest

from fhirpub.auth.assertions.single_use import use_once
from fhirpub.auth.assertions.verification import Assertion, AssertionRefused
from fhirpub.errors import Throttled
from fhirpub.storage.client_activity_contract import UsedAssertion
from tests.unit.auth.conftest import HandClock, MemoryAccess

END = HandClock().now + 300_000


@pytest.fixture
def access() -> MemoryAccess:
    return MemoryAccess()


async def use(access: MemoryAccess, jti: str = "j-1", *, owner: str = "ward") -> None:
    stated = Assertion(subject="client", jti=jti, expires=END)
    await use_once(access, stated, owner=owner, clock=HandClock())


def fill(access: MemoryAccess, count: int, *, until: int = END) -> None:
    access.used = {
        ("ward", str(number)): UsedAssertion("ward", str(number), until) for number in range(count)
    }


async def test_a_use_is_recorded_until_the_assertion_ends(access: MemoryAccess) -> None:
    await use(access)

    assert access.used == {("ward", "j-1"): UsedAssertion("ward", "j-1", END)}


async def test_the_second_use_is_refused_in_words(access: MemoryAccess) -> None:
    await use(access)

    with pytest.raises(AssertionRefused) as refused:
        await use(access)

    assert str(refused.value) == ("was used before: sign one with another jti for each request")


async def test_another_owner_may_use_the_same_jti(access: MemoryAccess) -> None:
    await use(access)
    await use(access, owner="other")

    assert len(access.used) == 2


async def test_ten_thousand_of_one_owner_may_be_alive(access: MemoryAccess) -> None:
    fill(access, 9_999)
    await use(access)

    assert len(access.used) == 10_000


async def test_one_more_waits_a_minute(access: MemoryAccess) -> None:
    fill(access, 10_000)

    with pytest.raises(Throttled) as refused:
        await use(access)

    assert refused.value.retry_after == 60
    assert ("ward", "j-1") not in access.used


async def test_those_that_have_ended_do_not_count(access: MemoryAccess) -> None:
    fill(access, 10_000, until=HandClock().now)

    await use(access)

    assert ("ward", "j-1") in access.used


async def test_many_of_one_owner_delay_no_other(access: MemoryAccess) -> None:
    fill(access, 10_000)

    await use(access, owner="other")

    assert ("other", "j-1") in access.used
