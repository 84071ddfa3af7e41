"""Tests of what surrounds an erasure: orders, holds, events, the audit trail (ADR 36)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.storage.audit_contract import AuditedVersion
from fhirpub.storage.erasure.contract import ErasedDeliveries, Erasure, Hold
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import AttemptResult
from fhirpub.testing.contracts.erasure.content import a_tombstone, an_erasure, erase
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_endpoint
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, new_id

_AT = 1_800_000_000_000


class ErasureOrderContract:
    """Orders and holds are durable, and no content is published or audited away."""

    async def test_no_event_of_an_erased_version_is_published_any_more(self, store: Store) -> None:
        event = b'[{"id":"x","type":"t","data":{}}]'
        first = a_version(events=event)
        await store.add(LAB, first)
        tombstone = replace(a_tombstone(first), events=event)
        await store.add(LAB, tombstone)
        while await store.erase_versions(LAB, tombstone):
            pass

        pending = {
            (entry.id, entry.version): entry.events
            for _tenant, entry in await store.pending_outbox(limit=100_000)
        }

        assert pending.get((first.id, 1), b"[]") == b"[]"
        assert pending[first.id, 2] == event

    async def test_an_audit_record_that_is_not_sealed_survives(self, store: Store) -> None:
        first = a_version(audit=b'{"action":"register"}')
        await store.add(LAB, first)

        await erase(store, first)

        unsealed = await store.unsealed_audit(limit=100_000, tenants=[])
        assert any(
            entry.version
            == AuditedVersion(type=REPORT, id=first.id, version=1, updated=first.updated)
            and entry.records == first.audit
            for entry in unsealed.entries
        )

    async def test_deliveries_lose_their_content_and_the_responses(self, store: Store) -> None:
        endpoint = an_endpoint(tenant=LAB)
        await store.put_endpoint(LAB, endpoint)
        about = a_delivery(endpoint.id, event_id="evt_a_1_1", body=b"secret")
        other = a_delivery(endpoint.id, 2, event_id="evt_b_1_1", body=b"kept")
        await store.append([about, other])
        (begun,) = await store.begin([about.key], now=_AT, until=_AT + 1000)
        attempt = replace(begun.attempts[-1], ended=_AT + 1, status=500, answer=b"secret too")
        await store.finish(
            [AttemptResult(key=about.key, attempt=attempt, state="retrying", due=_AT + 9)]
        )

        erased = await store.erase_deliveries(LAB, "evt_a_", lambda _body: b"ids")
        again = await store.erase_deliveries(LAB, "evt_a_", lambda _body: b"ids")

        found = {each.event_id: each for each in await store.scan_deliveries(limit=1000)}
        assert (erased.changed, again.changed) == (1, 0)
        assert erased.leased == 0
        assert (found["evt_a_1_1"].body, found["evt_a_1_1"].attempts[-1].answer) == (b"ids", b"")
        assert found["evt_b_1_1"].body == b"kept"

    async def test_deliveries_of_another_tenant_keep_their_content(self, store: Store) -> None:
        theirs = an_endpoint(tenant=OTHER)
        await store.put_endpoint(OTHER, theirs)
        about = a_delivery(theirs.id, tenant=OTHER, event_id="evt_d_1_1", body=b"kept")
        await store.append([about])

        erased = await store.erase_deliveries(LAB, "evt_d_", lambda _body: b"ids")

        assert not erased.changed
        assert [each.body for each in await store.scan_deliveries(limit=1000)] == [b"kept"]

    async def test_a_response_is_forgotten_though_the_body_has_no_content(
        self, store: Store
    ) -> None:
        endpoint = an_endpoint(tenant=LAB)
        await store.put_endpoint(LAB, endpoint)
        about = a_delivery(endpoint.id, event_id="evt_e_1_1", body=b"ids")
        await store.append([about])
        for number, answer in ((1, b"secret"), (2, b"")):
            (begun,) = await store.begin([about.key], now=_AT + number, until=_AT + 1000)
            attempt = replace(
                begun.attempts[-1], ended=_AT + number, status=500, reason="x", answer=answer
            )
            await store.finish(
                [AttemptResult(key=about.key, attempt=attempt, state="retrying", due=_AT)]
            )
        (before,) = await store.scan_deliveries()

        erased = await store.erase_deliveries(LAB, "evt_e_", lambda body: body)

        assert (erased.changed, erased.leased) == (1, 0)
        attempts = (replace(before.attempts[0], answer=b""), before.attempts[1])
        assert await store.scan_deliveries() == [replace(before, attempts=attempts)]

    async def test_many_deliveries_lose_their_content_together(self, store: Store) -> None:
        endpoint = an_endpoint(tenant=LAB)
        await store.put_endpoint(LAB, endpoint)
        about = [
            a_delivery(endpoint.id, number, event_id=f"evt_f_{number}", body=b"secret")
            for number in range(1, 122)
        ]
        await store.append(about)
        await store.begin([about[3].key], now=_AT, until=_AT + 2000)
        await store.begin([about[60].key], now=_AT, until=_AT + 1000)

        erased = await store.erase_deliveries(LAB, "evt_f_", lambda _body: b"ids")

        assert (erased.changed, erased.leased) == (121, _AT + 2000)
        assert {each.body for each in await store.scan_deliveries(limit=1000)} == {b"ids"}

    async def test_a_delivery_on_its_way_is_reported(self, store: Store) -> None:
        endpoint = an_endpoint(tenant=LAB)
        await store.put_endpoint(LAB, endpoint)
        about = a_delivery(endpoint.id, event_id="evt_c_1_1")
        await store.append([about])
        await store.begin([about.key], now=_AT, until=_AT + 1000)

        erased = await store.erase_deliveries(LAB, "evt_c_", lambda _body: b"ids")

        assert (erased.changed, erased.leased) == (1, _AT + 1000)

    async def test_orders_are_listed_until_they_are_finished_and_after(
        self, store: Store, reader: Store
    ) -> None:
        tenant = new_id()
        first, second = sorted(
            (an_erasure(tenant=tenant) for _ in range(2)), key=lambda each: each.id
        )
        for each in (first, second):
            await store.put_erasure(each)
        done = replace(first, version=3, finished=_AT + 5)
        await store.put_erasure(done)

        assert await reader.erasures(tenant=tenant) == [done, second]
        assert await reader.erasures(tenant=tenant, unfinished=True) == [second]
        assert await reader.erasures(tenant=tenant, after=(tenant, first.id)) == [second]
        assert await reader.erasures(tenant=tenant, limit=1) == [done]
        assert done in await reader.erasures(limit=10_000)
        assert await reader.erasures(tenant=new_id()) == []

    async def test_orders_behind_a_place_are_of_its_tenant_and_of_later_ones(
        self, store: Store, reader: Store
    ) -> None:
        keys = [("t1", "x"), ("t2", "x"), ("t2", "y"), ("t3", "a")]
        orders = [an_erasure(tenant=tenant, id=id_) for tenant, id_ in keys]
        for order in reversed(orders):
            await store.put_erasure(order)

        assert [*await reader.erasures()] == orders
        assert [*await reader.erasures(after=("t2", ""))] == orders[1:]
        assert [*await reader.erasures(after=("t2", "x"), limit=1)] == orders[2:3]
        assert [*await reader.erasures(after=("t3", "a"))] == []

    async def test_orders_are_listed_a_hundred_at_a_time(
        self, store: Store, reader: Store
    ) -> None:
        tenant = new_id()
        orders = sorted((an_erasure(tenant=tenant) for _ in range(101)), key=lambda each: each.id)
        for each in orders:
            await store.put_erasure(each)

        assert await reader.erasures(tenant=tenant) == orders[:100]

    async def test_an_order_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        order = an_erasure(tenant=new_id(), allows_reuse=True, version=4, finished=_AT + 9)
        await store.put_erasure(order)

        (found,) = await reader.erasures(tenant=order.tenant)

        assert found == order
        assert found.allows_reuse is True

    async def test_a_hold_is_of_one_resource_of_one_tenant(self, store: Store) -> None:
        hold = Hold(
            tenant=new_id(), type=REPORT, id=new_id(), since=1, operator="eve", reason="case 3"
        )
        await store.put_hold(hold)

        for tenant, resource in (
            (new_id(), (hold.type, hold.id)),
            (hold.tenant, ("Patient", hold.id)),
            (hold.tenant, (hold.type, new_id())),
        ):
            assert await store.delete_hold(tenant, resource) is False
        assert await store.holds(new_id()) == []
        assert await store.holds(hold.tenant) == [hold]

    async def test_a_later_hold_on_a_resource_replaces_the_earlier_one(self, store: Store) -> None:
        hold = Hold(
            tenant=new_id(), type=REPORT, id=new_id(), since=1, operator="eve", reason="case 3"
        )
        later = replace(hold, since=2, operator="adam", reason="case 4")
        await store.put_hold(hold)
        await store.put_hold(later)

        assert await store.holds(hold.tenant) == [later]

    async def test_a_hold_lasts_until_it_is_released(self, store: Store, reader: Store) -> None:
        tenant = new_id()
        hold = Hold(
            tenant=tenant, type=REPORT, id=new_id(), since=1, operator="eve", reason="case 3"
        )
        later = replace(hold, type="Patient", since=2)
        await store.put_hold(later)
        await store.put_hold(hold)

        assert await reader.holds(tenant) == [hold, later]
        assert await store.delete_hold(tenant, (hold.type, hold.id))
        assert not await store.delete_hold(tenant, (hold.type, hold.id))
        assert await reader.holds(tenant) == [later]

    async def test_what_was_erased_is_not_in_other_files(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)
        await erase(store, first)

        assert await store.forget_erased()

    async def test_the_longest_lease_of_all_deliveries_is_reported(self, store: Store) -> None:
        tenant = new_id()
        endpoint = an_endpoint(tenant=tenant)
        await store.put_endpoint(tenant, endpoint)
        about = [
            a_delivery(endpoint.id, number, tenant=tenant, event_id=f"evt_e_{number}")
            for number in (1, 2, 3)
        ]
        await store.append(about)
        for delivery, until in zip(about, (_AT + 1000, _AT + 5000, _AT + 3000), strict=True):
            await store.begin([delivery.key], now=_AT, until=until)

        erased = await store.erase_deliveries(tenant, "evt_e_", lambda body: body)

        assert erased == ErasedDeliveries(0, _AT + 5000)

    async def test_a_response_is_erased_where_the_body_has_no_content(self, store: Store) -> None:
        endpoint = an_endpoint(tenant=LAB)
        await store.put_endpoint(LAB, endpoint)
        about = a_delivery(endpoint.id, event_id="evt_f_1_1", body=b"ids")
        await store.append([about])
        for number, answer in enumerate((b"secret", b"")):
            now = _AT + number
            (begun,) = await store.begin([about.key], now=now, until=now + 1)
            attempt = replace(begun.attempts[-1], ended=now, status=500, answer=answer)
            result = AttemptResult(key=about.key, attempt=attempt, state="retrying", due=now)
            await store.finish([result])

        erased = await store.erase_deliveries(LAB, "evt_f_", lambda body: body)

        (found,) = [
            each
            for each in await store.scan_deliveries(limit=1000)
            if each.endpoint == endpoint.id
        ]
        assert erased.changed == 1
        assert [attempt.answer for attempt in found.attempts] == [b"", b""]

    async def test_orders_are_read_page_by_page_across_tenants(self, store: Store) -> None:
        orders = [an_erasure(tenant=tenant) for tenant in (new_id(), new_id()) for _ in range(2)]
        for each in orders:
            await store.put_erasure(each)

        after = ("", "")
        found: list[Erasure] = []
        while page := await store.erasures(after=after, limit=1):
            assert len(page) == 1
            found += page
            after = (found[-1].tenant, found[-1].id)

        in_order = sorted(orders, key=lambda each: (each.tenant, each.id))
        assert [each for each in found if each in orders] == in_order

    async def test_an_order_is_one_of_its_tenant(self, store: Store) -> None:
        ours, theirs = (an_erasure(tenant=new_id(), id="same") for _ in range(2))
        for each in (ours, theirs):
            await store.put_erasure(each)

        assert await store.erasures(tenant=ours.tenant) == [ours]
        assert await store.erasures(tenant=theirs.tenant) == [theirs]

    async def test_holds_of_one_moment_are_in_the_order_of_their_types_and_ids(
        self, store: Store
    ) -> None:
        tenant = new_id()
        holds = [
            Hold(tenant=tenant, type=type_name, id=id_, since=5, operator="eve", reason="case 3")
            for type_name, id_ in ((REPORT, "1"), (REPORT, "2"), ("Patient", "0"))
        ]
        for each in holds[::-1]:
            await store.put_hold(each)

        assert await store.holds(tenant) == holds
