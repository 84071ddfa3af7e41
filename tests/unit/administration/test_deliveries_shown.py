"""Deliveries are listed by endpoint, shown with their bodies, and replayed as selected."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import deliveries, endpoint_acts, endpoints
from fhirpub.audit.record import BEGUN
from fhirpub.errors import InvalidContent, NoSuchRecord, NotPossible
from fhirpub.fhir.times import instant
from fhirpub.storage.webhook_contract import DeliveryQuery
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, queue
from tests.unit.administration.office import URL, Office


@pytest.fixture
async def theirs(office: Office, other: str) -> str:
    return str((await office.run(endpoints.ADD, tenant=other, url=URL))["id"])


async def states(office: Office, tenant: str, endpoint: str) -> list[str]:
    found = await office.store.deliveries(tenant, DeliveryQuery(endpoint=endpoint))
    return [one.state for one in found]


async def test_the_newest_twenty_deliveries_of_each_endpoint_are_listed(
    office: Office, lab: str, other: str, lis: str, theirs: str
) -> None:
    await queue(office.store, 21, endpoint=lis, tenant=lab)
    await queue(office.store, 1, endpoint=theirs, tenant=other)

    listed = await office.run(deliveries.LIST)

    ours = [one["event_id"] for one in listed if one["endpoint"] == lis]
    assert ours == [f"evt_{number}" for number in range(21, 1, -1)]
    assert [one["event_id"] for one in listed if one["endpoint"] == theirs] == ["evt_1"]


async def test_deliveries_of_one_tenant_or_one_endpoint_are_listed(
    office: Office, lab: str, other: str, lis: str, theirs: str
) -> None:
    await queue(office.store, 2, endpoint=lis, tenant=lab)
    await queue(office.store, 2, endpoint=theirs, tenant=other)

    for given in ({"tenant": "Lab"}, {"endpoint": "lis"}):
        listed = await office.run(deliveries.LIST, **given)
        assert {one["endpoint"] for one in listed} == {lis}


async def test_deliveries_of_one_state_are_listed(office: Office, lab: str, lis: str) -> None:
    await queue(office.store, 1, endpoint=lis, tenant=lab, state="dead", ended=1)
    await office.store.append([a_delivery(lis, 2, tenant=lab)])

    for state, event in (("dead", "evt_1"), ("pending", "evt_2")):
        listed = await office.run(deliveries.LIST, state=state)
        assert [one["event_id"] for one in listed] == [event]


async def test_a_delivery_to_a_paused_endpoint_is_held(office: Office, lab: str, lis: str) -> None:
    await queue(office.store, 1, endpoint=lis, tenant=lab)
    await office.run(endpoint_acts.PAUSE, endpoint=lis)

    (one,) = await office.run(deliveries.LIST, state="held")

    assert one["status"] == "held"
    assert await office.run(deliveries.LIST, state="pending") == []


@pytest.mark.parametrize("limit", [0, 1_001, "5"])
async def test_a_list_has_one_to_a_thousand_of_each_endpoint(office: Office, limit: Any) -> None:
    for right in (1, 1_000):
        assert await office.run(deliveries.LIST, limit=right) == []

    with pytest.raises(InvalidContent, match="limit"):
        await office.run(deliveries.LIST, limit=limit)


async def test_a_list_that_would_be_too_long_is_refused(
    office: Office, lab: str, lis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_MAX_SHOWN", 3)
    await queue(office.store, 4, endpoint=lis, tenant=lab)

    assert len(await office.run(deliveries.LIST, limit=3)) == 3
    with pytest.raises(NotPossible, match="more than 3: name an endpoint or a tenant"):
        await office.run(deliveries.LIST, limit=4)


async def test_a_list_of_several_endpoints_that_would_be_too_long_is_refused(
    office: Office, lab: str, other: str, lis: str, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_MAX_SHOWN", 3)
    for tenant, endpoint in ((lab, lis), (other, theirs)):
        await queue(office.store, 2, endpoint=endpoint, tenant=tenant)

    assert len(await office.run(deliveries.LIST, tenant=lab)) == 2
    with pytest.raises(NotPossible, match="more than 3"):
        await office.run(deliveries.LIST)


async def test_deliveries_of_an_event_are_shown_with_their_bodies(
    office: Office, lab: str, other: str, lis: str, theirs: str
) -> None:
    for tenant, endpoint in ((lab, lis), (other, theirs)):
        await office.store.append([a_delivery(endpoint, tenant=tenant)])

    both = await office.run(deliveries.SHOW, event="evt_1")
    (ours,) = await office.run(deliveries.SHOW, event="evt_1", endpoint="lis")

    assert {one["endpoint"] for one in both} == {lis, theirs}
    assert (ours["endpoint"], ours["body"]) == (lis, '{"sequence":1}')


async def test_each_look_at_a_delivery_is_in_the_chain_of_its_tenant(
    office: Office, lab: str, other: str, lis: str, theirs: str
) -> None:
    for tenant, endpoint in ((lab, lis), (other, theirs)):
        await office.store.append([a_delivery(endpoint, tenant=tenant)])
    before = len(await office.records())

    await office.run(deliveries.SHOW, event="evt_1")

    assert sorted((await office.records())[before:]) == sorted(
        (tenant, "delivery.read", 200, [f"Endpoint/{endpoint}", "DiagnosticReport/1"])
        for tenant, endpoint in ((lab, lis), (other, theirs))
    )


async def test_a_delivery_about_no_resource_names_its_endpoint_alone(
    office: Office, lab: str, lis: str
) -> None:
    await office.store.append([a_delivery(lis, tenant=lab, resource="")])

    await office.run(deliveries.SHOW, event="evt_1")

    assert (await office.records())[-1][3] == [f"Endpoint/{lis}"]


async def test_an_event_that_was_never_sent_is_named(office: Office, lis: str) -> None:
    with pytest.raises(NoSuchRecord, match="there is no delivery evt_9"):
        await office.run(deliveries.SHOW, event="evt_9")


async def test_dead_letters_are_opened_again_and_nothing_else(
    office: Office, lab: str, lis: str
) -> None:
    await queue(office.store, 2, endpoint=lis, tenant=lab, state="dead", ended=1)
    await office.store.append([a_delivery(lis, 3, tenant=lab, state="delivered", ended=1)])

    assert await office.run(deliveries.REPLAY, dead=True) == {
        "reopened": 2,
        "held": [],
        "following": None,
    }
    assert await states(office, lab, lis) == ["pending", "pending", "delivered"]


async def test_a_replay_is_of_one_tenant_if_it_is_named(
    office: Office, lab: str, other: str, lis: str, theirs: str
) -> None:
    for tenant, endpoint in ((lab, lis), (other, theirs)):
        await queue(office.store, 1, endpoint=endpoint, tenant=tenant, state="dead", ended=1)

    await office.run(deliveries.REPLAY, dead=True, tenant="Lab")

    assert await states(office, lab, lis) == ["pending"]
    assert await states(office, other, theirs) == ["dead"]


async def test_a_replay_of_events_opens_these_alone(office: Office, lab: str, lis: str) -> None:
    await queue(office.store, 3, endpoint=lis, tenant=lab, state="delivered", ended=1)

    await office.run(deliveries.REPLAY, events=["evt_2"])

    assert await states(office, lab, lis) == ["delivered", "pending", "delivered"]


async def test_a_period_begins_with_its_first_moment_and_ends_before_its_last(
    office: Office, lab: str, lis: str
) -> None:
    for number in range(1, 5):
        created = NOW + number * 1_000
        one = a_delivery(lis, number, tenant=lab, state="delivered", ended=1, created=created)
        await office.store.append([one])

    since, until = instant(NOW + 2_000), instant(NOW + 4_000)
    await office.run(deliveries.REPLAY, since=since, until=until)

    assert await states(office, lab, lis) == ["delivered", "pending", "pending", "delivered"]


async def test_nothing_is_opened_if_one_of_the_events_was_never_sent(
    office: Office, lab: str, lis: str
) -> None:
    await queue(office.store, 1, endpoint=lis, tenant=lab, state="dead", ended=1)

    with pytest.raises(NoSuchRecord, match="evt_9"):
        await office.run(deliveries.REPLAY, events=["evt_1", "evt_9"])

    assert await states(office, lab, lis) == ["dead"]


async def test_endpoints_that_hold_what_was_opened_are_named(
    office: Office, lab: str, lis: str
) -> None:
    await queue(office.store, 1, endpoint=lis, tenant=lab, state="dead", ended=1)
    idle = (await office.run(endpoints.ADD, tenant=lab, url=URL))["id"]
    for one in (lis, idle):
        await office.run(endpoint_acts.PAUSE, endpoint=one)

    done = await office.run(deliveries.REPLAY, dead=True)

    assert done["held"] == [{"endpoint": lis, "state": "paused"}]


async def test_nothing_is_opened_for_an_endpoint_that_was_removed(
    office: Office, lab: str, lis: str
) -> None:
    await queue(office.store, 1, endpoint=lis, tenant=lab, state="dead", ended=1)
    await office.run(endpoints.REMOVE, endpoint=lis)

    assert (await office.run(deliveries.REPLAY, dead=True))["reopened"] == 0
    assert await states(office, lab, lis) == ["dead"]


async def test_a_replay_is_recorded_with_its_endpoints(office: Office, lis: str) -> None:
    before = len(await office.records())

    await office.run(deliveries.REPLAY, dead=True, endpoint="lis")

    assert (await office.records())[before:] == [
        ("", "delivery.replay", status, [f"Endpoint/{lis}"]) for status in (BEGUN, 200)
    ]


@pytest.mark.parametrize("place", ["x", "x:", "x:y", ":-1"])
async def test_a_place_that_no_response_had_is_refused(office: Office, place: str) -> None:
    with pytest.raises(InvalidContent, match="from: "):
        await office.run(deliveries.REPLAY, **{"dead": True, "from": place})
