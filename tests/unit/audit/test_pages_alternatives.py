"""Blocks that are found by one of several keys: none between them is passed over."""

from __future__ import annotations

import pytest

from fhirpub.audit.record import Agent
from fhirpub.storage.store import Store
from tests.audit_trail import NOON, a_record, seal
from tests.unit.audit import test_pages
from tests.unit.audit.test_pages import every_match
from tests.unit.audit.test_search import TERMS

store = test_pages.store
HALF_HOUR = 1_800_000
MANY = 20
"""More blocks than one look finds of one key."""


@pytest.mark.parametrize(("often", "seldom"), [("c1", "c2"), ("c2", "c1")])
async def test_an_agent_of_few_blocks_hides_none_of_another(
    store: Store, often: str, seldom: str
) -> None:
    agents = [seldom, *[often] * MANY, seldom]
    records = [
        a_record("read", at=NOON + number * HALF_HOUR, agent=Agent(client=client))
        for number, client in enumerate(agents)
    ]
    await seal(store, TERMS.tenant, records)

    found = await every_match(store, TERMS, [("agent", "c1,c2")])

    assert len(found) == MANY + 2


async def test_a_search_that_begins_in_the_middle_of_a_block_goes_on_there(store: Store) -> None:
    records = [a_record("read", at=NOON + number) for number in range(7)]
    await seal(store, TERMS.tenant, records)

    found = await every_match(store, TERMS, [("_count", "2")])

    times = [one["recorded"] for one in found]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 7
