"""Tests of storing endpoints and their health."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.storage.store import Store
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    a_full_endpoint,
    an_endpoint,
    end,
    queue,
)
from fhirpub.testing.samples import LAB, OTHER, new_id


class EndpointContract:
    """An endpoint changes only from one revision to the next."""

    async def test_an_endpoint_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        endpoint = a_full_endpoint()

        assert await store.put_endpoint(LAB, endpoint) is True

        assert await reader.endpoint(LAB, endpoint.id) == endpoint
        assert await reader.endpoints(LAB) == [endpoint]

    async def test_an_endpoint_of_the_next_revision_replaces_the_one_before(
        self, store: Store
    ) -> None:
        before = an_endpoint()
        await store.put_endpoint(LAB, before)
        after = replace(a_full_endpoint(), id=before.id, revision=2)

        assert await store.put_endpoint(LAB, after) is True
        assert await store.endpoints(LAB) == [after]

    @pytest.mark.parametrize("revision", [1, 2, 4])
    async def test_an_endpoint_of_any_other_revision_changes_nothing(
        self, store: Store, revision: int
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        await store.put_endpoint(LAB, replace(endpoint, revision=2))

        other = replace(endpoint, revision=revision, why="other")

        assert await store.put_endpoint(LAB, other) is False
        assert await store.endpoint(LAB, endpoint.id) == replace(endpoint, revision=2)

    @pytest.mark.parametrize("revision", [1, 2])
    async def test_another_tenants_endpoint_is_not_replaced(
        self, store: Store, revision: int
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        theirs = replace(endpoint, tenant=OTHER, revision=revision)

        assert await store.put_endpoint(OTHER, theirs) is False
        assert await store.endpoint(LAB, endpoint.id) == endpoint

    @pytest.mark.parametrize("revision", [1, 2])
    async def test_an_endpoint_is_put_by_its_own_tenant_alone(
        self, store: Store, revision: int
    ) -> None:
        endpoint = an_endpoint()
        if revision > 1:
            await store.put_endpoint(LAB, endpoint)
        before = await store.all_endpoints()

        changed = replace(endpoint, revision=revision, why="other")

        assert await store.put_endpoint(OTHER, changed) is False
        assert await store.all_endpoints() == before
        assert await store.endpoints(OTHER) == []

    async def test_an_endpoint_that_is_not_there_is_not_replaced(self, store: Store) -> None:
        assert await store.put_endpoint(LAB, an_endpoint(revision=2)) is False
        assert await store.endpoints(LAB) == []

    async def test_of_racing_changes_of_an_endpoint_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        changes = [replace(endpoint, revision=2, why=str(number)) for number in range(10)]

        put = await asyncio.gather(
            *(
                item.put_endpoint(LAB, change)
                for item, change in zip([store, other_store] * 5, changes, strict=True)
            )
        )

        assert put.count(True) == 1
        assert await store.endpoint(LAB, endpoint.id) == changes[put.index(True)]

    async def test_a_changed_endpoint_keeps_its_condition_and_how_often_it_was_reopened(
        self, store: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        (delivery,) = await queue(store, 1, endpoint=endpoint.id)
        await end(store, delivery)
        await store.reopen(LAB, endpoint.id, [delivery.event_id], now=NOW)
        await store.save_health(endpoint.id, b'{"failing":1}')

        await store.put_endpoint(LAB, replace(endpoint, revision=2))

        found = await store.endpoint(LAB, endpoint.id)
        assert found == replace(endpoint, revision=2, condition=b'{"failing":1}', reopened=1)

    async def test_endpoints_are_listed_oldest_first_deleted_ones_too(self, store: Store) -> None:
        for created, tenant in ((3, LAB), (1, OTHER), (2, LAB)):
            await store.put_endpoint(
                tenant, an_endpoint(created=created, tenant=tenant, state="deleted")
            )

        assert [endpoint.created for endpoint in await store.endpoints(LAB)] == [2, 3]

    async def test_endpoints_of_one_moment_are_listed_in_the_order_of_their_ids(
        self, store: Store
    ) -> None:
        ids = [f"{number}1111111-1111-4111-8111-111111111111" for number in (3, 1, 2)]
        for id_ in ids:
            await store.put_endpoint(LAB, an_endpoint(id=id_, created=5))

        assert [endpoint.id for endpoint in await store.endpoints(LAB)] == sorted(ids)
        assert [endpoint.id for endpoint in await store.all_endpoints()] == sorted(ids)
        assert [each.id for each in await store.all_endpoints(of=[LAB])] == sorted(ids)

    async def test_a_condition_is_that_of_one_endpoint(self, store: Store) -> None:
        one, other = an_endpoint(created=1), an_endpoint(created=2)
        for endpoint in (one, other):
            await store.put_endpoint(LAB, endpoint)

        await store.save_health(one.id, b"{1}")

        assert await store.endpoints(LAB) == [replace(one, condition=b"{1}"), other]

    async def test_another_tenants_endpoint_is_not_seen(self, store: Store) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        assert await store.endpoint(OTHER, endpoint.id) is None
        assert await store.endpoints(OTHER) == []

    async def test_those_who_send_see_all_endpoints_but_deleted_ones(self, store: Store) -> None:
        shown = [an_endpoint(created=2), an_endpoint(created=1, tenant=OTHER, state="disabled")]
        for endpoint in (*shown, an_endpoint(state="deleted")):
            await store.put_endpoint(endpoint.tenant, endpoint)

        assert await store.all_endpoints() == shown[::-1]

    async def test_or_those_of_some_tenants(self, store: Store) -> None:
        ours, theirs = an_endpoint(created=2), an_endpoint(created=1, tenant=OTHER)
        somebodys = an_endpoint(tenant="5f0c5f7a-0000-4000-8000-000000000000")
        for endpoint in (ours, theirs, somebodys, an_endpoint(state="deleted")):
            await store.put_endpoint(endpoint.tenant, endpoint)

        assert await store.all_endpoints(of={LAB, OTHER}) == [theirs, ours]
        assert await store.all_endpoints(of=[LAB, somebodys.id]) == [ours]
        assert await store.all_endpoints(of=[]) == []

    async def test_a_condition_is_kept_and_is_no_change_of_the_endpoint(
        self, store: Store, reader: Store
    ) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)

        await store.save_health(endpoint.id, bytes(range(256)))

        found = await reader.endpoint(LAB, endpoint.id)
        assert found == replace(endpoint, condition=bytes(range(256)))

    async def test_the_condition_of_an_unknown_endpoint_is_dropped(self, store: Store) -> None:
        await store.save_health(new_id(), b"{}")

        assert await store.all_endpoints() == []

    async def test_a_copied_endpoint_is_there_as_it_is(self, store: Store) -> None:
        endpoint = replace(a_full_endpoint(), revision=7, condition=b"{1}", reopened=3)
        before = replace(endpoint, revision=2, reopened=1)

        assert await store.copy_endpoint(before, over=None)
        assert await store.copy_endpoint(endpoint, over=before)

        assert await store.endpoints(LAB) == [endpoint]

    async def test_an_endpoint_is_not_copied_over_one_that_is_missing(self, store: Store) -> None:
        endpoint = an_endpoint()

        assert await store.copy_endpoint(endpoint, over=endpoint) is False
        assert await store.endpoints(LAB) == []

    async def test_an_endpoint_is_not_copied_over_what_it_has_become(self, store: Store) -> None:
        endpoint = an_endpoint()
        copy = replace(endpoint, description="copy")
        await store.put_endpoint(LAB, endpoint)
        await store.save_health(endpoint.id, b"{1}")

        copied = [await store.copy_endpoint(copy, over=item) for item in (None, endpoint)]

        assert copied == [False, False]
        assert await store.endpoints(LAB) == [replace(endpoint, condition=b"{1}")]
