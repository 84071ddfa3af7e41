"""For how long it is known whether a tenant has reuse."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, cast

import pytest

from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.removal import reuse
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import ERASURE_REUSE, Records
from fhirpub.testing.samples import LAB, OTHER


class Orders:
    """The orders that allow reuse, and a primary that answers at once; counts the questions."""

    def __init__(self) -> None:
        self.tenants = {OTHER}
        self.asked: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        self._found: list[dict[str, Any]] = []

    def find(self, wanted: Mapping[str, Any], shown: object, **options: Any) -> Self:
        self.asked.append((wanted, {"shown": shown, **options}))
        self._found = [{"_id": "x"}] if wanted["tenant"] in self.tenants else []
        return self

    async def to_list(self, _most: None) -> list[dict[str, Any]]:
        return self._found

    async def answer(self, look: Callable[[], Awaitable[object]]) -> object:
        return await look()


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
def known(orders: Orders) -> Reuse:
    return Reuse(cast("Records", orders), primary=cast("Primary", orders))


async def test_a_tenant_has_reuse_if_one_order_of_its_own_allows_it(
    known: Reuse, orders: Orders
) -> None:
    assert await known.of(LAB) is False
    assert await known.of(OTHER) is True

    options = {"shown": {"_id": True}, "limit": 1, "hint": ERASURE_REUSE}
    assert orders.asked == [
        ({"tenant": tenant, "allows_reuse": True}, options) for tenant in (LAB, OTHER)
    ]


async def test_it_is_known_for_some_seconds(known: Reuse, orders: Orders) -> None:
    await known.of(LAB)
    await known.of(OTHER)
    orders.tenants = {LAB}

    assert await known.of(LAB) is False
    assert await known.of(OTHER) is True
    assert len(orders.asked) == 2


async def test_it_is_known_for_no_more_than_five_seconds(known: Reuse) -> None:
    await known.of(LAB)

    (until, _has_reuse) = known._known[LAB]
    assert until <= asyncio.get_running_loop().time() + 5


async def test_after_that_it_is_asked_for_again(
    known: Reuse, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "_FRESH_SECONDS", 0.0)
    await known.of(LAB)
    orders.tenants = {LAB}

    assert await known.of(LAB) is True


async def test_after_an_order_of_this_process_it_is_asked_for_again(
    known: Reuse, orders: Orders
) -> None:
    await known.of(LAB)
    await known.of(OTHER)
    orders.tenants = {LAB}

    known.forget(LAB)

    assert await known.of(LAB) is True
    assert await known.of(OTHER) is True


async def test_what_was_never_asked_for_can_be_forgotten(known: Reuse) -> None:
    known.forget(LAB)

    assert await known.of(LAB) is False


@pytest.mark.parametrize(("most", "asked"), [(2, ["c", "a"]), (3, ["c"])])
async def test_so_many_tenants_are_known(
    known: Reuse,
    orders: Orders,
    monkeypatch: pytest.MonkeyPatch,
    *,
    most: int,
    asked: list[str],
) -> None:
    monkeypatch.setattr(reuse, "_MAX_TENANTS", most)
    for tenant in ("a", "b", "c", "a", "c"):
        await known.of(tenant)

    assert [wanted["tenant"] for wanted, _options in orders.asked] == ["a", "b", *asked]
