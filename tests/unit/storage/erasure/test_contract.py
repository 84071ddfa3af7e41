"""What an order of erasure is until it is finished, and how all of them are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fhirpub.storage.erasure.contract import (
    ErasedDeliveries,
    ErasedStep,
    Erasure,
    ErasureStore,
    erasures_of,
)
from fhirpub.testing.contracts.erasure.content import an_erasure


def _order(number: int, tenant: str = "a") -> Erasure:
    return an_erasure(tenant=tenant, id=f"{number:04}", ordered=number)


class _Orders:
    """A store with orders, which records the pages that are read."""

    def __init__(self, orders: Sequence[Erasure]) -> None:
        self._orders = orders
        self.pages: list[dict[str, Any]] = []

    async def erasures(self, **asked: Any) -> Sequence[Erasure]:
        self.pages.append(asked)
        behind = [each for each in self._orders if (each.tenant, each.id) > asked["after"]]
        return behind[: asked["limit"]]


async def _all(orders: Sequence[Erasure]) -> tuple[list[Erasure], list[dict[str, Any]]]:
    store = _Orders(orders)
    return [each async for each in erasures_of(store)], store.pages  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
async def test_all_orders_are_yielded_once_and_in_order(count: int) -> None:
    orders = [_order(number) for number in range(count)]

    found, _pages = await _all(orders)

    assert found == orders


async def test_orders_are_read_a_hundred_at_a_time_of_all_tenants() -> None:
    orders = [_order(number, tenant) for tenant in "ab" for number in range(60)]

    found, pages = await _all(orders)

    assert found == orders
    assert pages == [
        {"after": ("", ""), "limit": 100},
        {"after": ("b", "0039"), "limit": 100},
        {"after": ("b", "0059"), "limit": 100},
    ]


def test_an_order_is_neither_begun_nor_finished_and_frees_no_identifier() -> None:
    order = _order(1)

    assert (order.version, order.finished, order.allows_reuse) == (0, None, False)


@pytest.mark.parametrize(
    ("step", "erased"),
    [
        (ErasedStep(), False),
        (ErasedStep(size=5), False),
        (ErasedStep(versions=1), True),
        (ErasedStep(members=1), True),
    ],
)
def test_a_step_erased_something_if_there_were_versions_or_members(
    step: ErasedStep, *, erased: bool
) -> None:
    assert bool(step) is erased


def test_nothing_was_erased_of_deliveries_unless_it_was_counted() -> None:
    assert ErasedDeliveries() == ErasedDeliveries(changed=0, leased=0)


async def test_an_engine_that_keeps_no_remains_has_forgotten_what_was_erased() -> None:
    assert await ErasureStore.forget_erased(object()) is True  # type: ignore[arg-type]
