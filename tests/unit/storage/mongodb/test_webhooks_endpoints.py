"""Endpoints, leases and the outbox, as a server keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.contracts.webhooks.records import (
    EVENTS,
    NOW,
    UNTIL,
    a_full_endpoint,
    an_endpoint,
    events_added,
)
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, new_id, successor

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_endpoint_is_read_as_it_was_put_by_its_tenant(shared: MongoStore) -> None:
    endpoint = a_full_endpoint()

    assert await shared.put_endpoint(LAB, endpoint)

    assert await shared.endpoint(LAB, endpoint.id) == endpoint
    assert await shared.endpoint(OTHER, endpoint.id) is None
    assert await shared.endpoint(LAB, new_id()) is None
    assert endpoint in await shared.endpoints(LAB)
    assert endpoint not in await shared.endpoints(OTHER)


async def test_an_endpoint_is_put_once_and_for_its_own_tenant(shared: MongoStore) -> None:
    endpoint = an_endpoint()

    assert not await shared.put_endpoint(OTHER, endpoint)
    assert await shared.put_endpoint(LAB, endpoint)
    assert not await shared.put_endpoint(LAB, replace(endpoint, url="https://b.example"))
    assert await shared.endpoint(LAB, endpoint.id) == endpoint


async def test_an_endpoint_is_changed_from_one_revision_to_the_next(shared: MongoStore) -> None:
    endpoint = an_endpoint()
    await shared.put_endpoint(LAB, endpoint)
    await shared.save_health(endpoint.id, b"health")
    second = replace(endpoint, revision=2, url="https://b.example")

    assert not await shared.put_endpoint(LAB, replace(second, revision=3))
    assert await shared.put_endpoint(LAB, second)
    assert not await shared.put_endpoint(LAB, second)
    assert await shared.endpoint(LAB, endpoint.id) == replace(second, condition=b"health")


async def test_the_health_of_one_endpoint_is_saved(shared: MongoStore) -> None:
    endpoint, other = an_endpoint(), an_endpoint()
    for one in (endpoint, other):
        await shared.put_endpoint(LAB, one)

    await shared.save_health(endpoint.id, b"health")
    await shared.save_health("none", b"health")

    assert await shared.endpoint(LAB, endpoint.id) == replace(endpoint, condition=b"health")
    assert await shared.endpoint(LAB, other.id) == other
    assert await shared.endpoint(LAB, "none") is None


async def test_a_copy_replaces_what_is_expected_alone(shared: MongoStore) -> None:
    endpoint = replace(an_endpoint(), revision=4, condition=b"health", reopened=3)
    later = replace(endpoint, revision=9, reopened=8)

    assert not await shared.copy_endpoint(later, over=endpoint)
    assert await shared.copy_endpoint(endpoint, over=None)
    assert not await shared.copy_endpoint(later, over=None)
    assert not await shared.copy_endpoint(later, over=replace(endpoint, reopened=2))
    assert await shared.endpoint(LAB, endpoint.id) == endpoint
    assert await shared.copy_endpoint(later, over=endpoint)
    assert await shared.endpoint(LAB, endpoint.id) == later


async def test_endpoints_of_some_tenants_are_those_that_are_not_deleted(
    shared: MongoStore,
) -> None:
    first, second = new_id(), new_id()
    active = an_endpoint(tenant=first, created=2)
    disabled = an_endpoint(tenant=first, created=1, state="disabled")
    deleted = an_endpoint(tenant=first, state="deleted")
    other = an_endpoint(tenant=second, created=3)
    for endpoint in (active, disabled, deleted, other):
        await shared.put_endpoint(endpoint.tenant, endpoint)

    assert await shared.all_endpoints(of=[first]) == [disabled, active]
    assert await shared.all_endpoints(of=[first, second]) == [disabled, active, other]
    assert await shared.all_endpoints(of=[]) == []
    found = await shared.all_endpoints()
    assert {active.id, disabled.id, other.id} <= {one.id for one in found}
    assert deleted not in found


@pytest.mark.parametrize(
    ("until", "is_free"),
    [
        (NOW - 1, True),
        (NOW, True),
        (NOW + 1, False),
        (NOW + 300_000, False),
        (NOW + 300_001, True),
    ],
    ids=["ended", "ends", "lasts", "longest", "of a wrong clock"],
)
async def test_a_lease_of_another_is_taken_once_it_ends_or_if_its_clock_was_wrong(
    shared: MongoStore, until: int, *, is_free: bool
) -> None:
    name = new_id()
    assert await shared.lease([name], owner="a", now=until - 30_000, until=until) == {name}

    taken = await shared.lease([name], owner="b", now=NOW, until=UNTIL)

    assert taken == ({name} if is_free else frozenset())


async def test_a_lease_is_renewed_and_released_by_its_owner(shared: MongoStore) -> None:
    name, other = new_id(), new_id()
    await shared.lease([name, other], owner="a", now=NOW, until=UNTIL)

    assert await shared.lease([name], owner="a", now=NOW, until=UNTIL + 1) == {name}
    await shared.release([name], owner="b")
    assert not await shared.lease([name], owner="b", now=UNTIL, until=UNTIL + 30_000)
    await shared.release([name], owner="a")
    assert await shared.lease([name, other], owner="b", now=NOW, until=UNTIL) == {name}
    assert await shared.lease([], owner="a", now=NOW, until=UNTIL) == frozenset()


async def test_events_leave_the_outbox_once_they_are_published(shared: MongoStore) -> None:
    first = a_version(updated=5)
    second = successor(first)
    third = a_tombstone(a_version(updated=second.updated + 1))
    await events_added(shared, [first, third], OTHER)
    await events_added(shared, [second], OTHER)
    quiet = a_version()
    await shared.add(OTHER, quiet)
    keys = [(one.id, one.version) for one in (first, second, third)]

    found = await shared.pending_outbox(limit=9)
    assert [(one.id, one.version) for _tenant, one in found] == keys
    tenant, entry = found[0]
    assert (tenant, entry.type, entry.updated, entry.events) == (OTHER, REPORT, 5, EVENTS)
    assert [one.type for _tenant, one in found] == [REPORT] * 3
    assert len(await shared.pending_outbox(limit=2)) == 2
    assert await shared.pending_outbox(limit=0) == []

    await shared.mark_published([])
    await shared.mark_published([keys[0], (new_id(), 1)])

    assert await shared.outbox_contains([*keys, (quiet.id, 1)]) == {*keys[1:]}
    assert await shared.outbox_contains([]) == frozenset()
    await shared.mark_published(keys)
    assert await shared.pending_outbox(limit=9) == []
