"""Orders to erase that were interrupted are completed, once they are old enough."""

from __future__ import annotations

import pytest

from fhirpub.app.erasures import InterruptedErasures, eraser_of
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.testing.contracts.erasure.content import an_erasure
from tests.bodies import register_body
from tests.unit.app.laboratory import Lab
from tests.unit.interactions.erasure.registered import NOW, TENANT, registered


@pytest.fixture
async def order(lab: Lab) -> Erasure:
    """An order that was begun and then interrupted."""
    version = await registered(lab.store, register_body("R-1"))
    order = an_erasure(tenant=TENANT.id, type=version.type, id=version.id, ordered=NOW)
    await eraser_of(lab.services(), TENANT).begin(order)
    return order


@pytest.mark.parametrize(("age", "count"), [(119_999, 0), (120_000, 1)])
async def test_an_interrupted_order_is_completed_once_it_is_old(
    lab: Lab, order: Erasure, age: int, count: int
) -> None:
    lab.now = NOW + age

    assert await InterruptedErasures(lab.services()).complete() == count
    unfinished = await lab.store.erasures(unfinished=True, after=("", ""), limit=9)
    assert len(unfinished) == 1 - count


async def test_a_completed_order_is_not_completed_again(lab: Lab, order: Erasure) -> None:
    erasures = InterruptedErasures(lab.services())

    assert await erasures.complete(young_ms=0) == 1
    assert await erasures.complete(young_ms=0) == 0
