"""A replay to several endpoints: where a call ends, and which endpoints it leaves out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fhirpub.administration import deliveries, endpoint_acts, endpoints
from fhirpub.administration.operation import Operation
from fhirpub.audit.record import BEGUN
from fhirpub.errors import BrokenRule, InvalidContent
from fhirpub.storage.webhook_contract import Delivery, DeliveryQuery
from fhirpub.testing.contracts.webhooks.records import a_delivery, end, queue
from fhirpub.webhooks.management import delivery_log
from tests.unit.administration.office import URL, Office

LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
async def three(office: Office, lab: str) -> list[str]:
    """The ids of endpoints with three dead letters each, in their order."""
    for _ in range(3):
        added = await office.run(endpoints.ADD, tenant=lab, url=URL)
        await queue(office.store, 3, endpoint=added["id"], tenant=lab, state="dead", ended=1)
    return [one.id for one in await office.store.endpoints(lab)]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call end after four deliveries, which it reads by two."""
    monkeypatch.setattr(delivery_log, "_REPLAY_BATCH_SIZE", 2)
    monkeypatch.setattr(deliveries, "_MAX_REPLAYED", 4)


async def stored(office: Office, tenant: str, endpoint: str) -> Sequence[Delivery]:
    return await office.store.deliveries(tenant, DeliveryQuery(endpoint=endpoint))


async def states(office: Office, tenant: str, endpoint: str) -> list[str]:
    return [one.state for one in await stored(office, tenant, endpoint)]


@pytest.mark.usefixtures("cut")
async def test_a_call_ends_with_so_many_deliveries_of_all_endpoints_together(
    office: Office, three: list[str]
) -> None:
    step = await office.run(deliveries.REPLAY, since=LONG_AGO)

    assert (step["reopened"], step["following"]) == (5, f"{three[1]}:3")


@pytest.mark.usefixtures("cut")
async def test_a_replay_goes_on_behind_an_endpoint_that_was_removed_since(
    office: Office, lab: str, three: list[str]
) -> None:
    step = await office.run(deliveries.REPLAY, since=LONG_AGO)
    for sent in await stored(office, lab, three[0]):
        await end(office.store, sent, now=office.clock())
    await office.run(endpoints.REMOVE, endpoint=three[1])

    await office.run(deliveries.REPLAY, since=LONG_AGO, **{"from": step["following"]})

    assert await states(office, lab, three[0]) == ["delivered"] * 3
    assert await states(office, lab, three[2]) == ["pending"] * 3


async def test_a_replay_from_an_endpoint_that_is_not_there_is_refused(
    office: Office, lab: str, three: list[str]
) -> None:
    with pytest.raises(InvalidContent) as refused:
        await office.run(deliveries.REPLAY, since=LONG_AGO, **{"from": f"{three[0]}x:1"})

    assert [issue.expression for issue in refused.value.issues] == ["from"]
    assert await states(office, lab, three[0]) == ["dead"] * 3


async def test_a_replay_to_all_leaves_out_what_is_read_by_its_client(
    office: Office, lab: str, three: list[str]
) -> None:
    read = (await office.run(endpoints.ADD, tenant=lab, url="pull:ward"))["id"]
    await queue(office.store, 1, endpoint=read, tenant=lab, state="dead", ended=1)

    assert (await office.run(deliveries.REPLAY, dead=True))["reopened"] == 9
    assert await states(office, lab, read) == ["dead"]


async def test_a_replay_is_recorded_with_all_endpoints_that_there_are(
    office: Office, lab: str, three: list[str]
) -> None:
    await office.run(endpoints.REMOVE, endpoint=three[1])
    before = len(await office.records())

    await office.run(deliveries.REPLAY, dead=True)

    names = [f"Endpoint/{one}" for one in (three[0], three[2])]
    assert (await office.records())[before:] == [
        ("", "delivery.replay", status, names) for status in (BEGUN, 200)
    ]


async def test_an_event_is_shown_of_the_endpoint_that_has_it(
    office: Office, lab: str, three: list[str]
) -> None:
    for endpoint in three:
        await office.store.append(
            [a_delivery(endpoint, 4, tenant=lab, event_id=f"evt_{endpoint}")]
        )

    for endpoint in three:
        shown = await office.run(deliveries.SHOW, event=f"evt_{endpoint}")
        assert [one["endpoint"] for one in shown] == [endpoint]


@pytest.mark.parametrize(
    ("act", "state"), [(endpoint_acts.PAUSE, "paused"), (endpoint_acts.DISABLE, "disabled")]
)
async def test_a_replay_names_endpoints_as_held_only_where_something_was_reopened(
    office: Office, lab: str, three: list[str], act: Operation, state: str
) -> None:
    idle = (await office.run(endpoints.ADD, tenant=lab, url=URL))["id"]
    for endpoint in (three[1], idle):
        await office.run(act, endpoint=endpoint)

    step = await office.run(deliveries.REPLAY, dead=True)

    assert step["held"] == [{"endpoint": three[1], "state": state}]


async def test_a_replay_to_an_endpoint_that_is_read_by_its_client_is_refused(
    office: Office, lab: str
) -> None:
    read = (await office.run(endpoints.ADD, tenant=lab, url="pull:ward"))["id"]

    with pytest.raises(BrokenRule, match="is read by its client"):
        await office.run(deliveries.REPLAY, dead=True, endpoint=read)
