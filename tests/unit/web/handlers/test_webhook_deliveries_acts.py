"""What reading and replaying deliveries leaves behind: marks, counts, and where to go on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import HOUR_MS, now_ms
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.metrics import Moves
from tests.unit.web.handlers.asking import NotingMemory, asked, running
from tests.unit.web.handlers.test_webhook_deliveries import BASE, endpoint, replay, sent

__all__ = ["endpoint", "sent"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ({"status": "delivered"}, 3),
        ({"status": "dead"}, 0),
        ({"from_seq": 2}, 2),
        ({"to_seq": 2}, 2),
        ({"from_seq": 2, "to_seq": 2}, 1),
        ({"from_seq": 1, "to_seq": 3}, 3),
        ({"until": instant(NOW + 1_000)}, 1),
        ({"since": instant(NOW + 1_000)}, 2),
        ({"since": instant(NOW + 1), "until": instant(NOW + 3_600_000)}, 1),
    ],
)
def test_what_is_replayed_is_counted(
    lab: Integrator, sent: str, body: dict[str, str], count: int
) -> None:
    moves = Moves(running(lab))

    answer = replay(lab, sent.removesuffix("/deliveries"), body)

    assert (answer.status, answer.json["reopened"]) == (200, count)
    assert answer.json["state"] == lab.get(sent.removesuffix("/deliveries")).json["state"]
    assert moves.by("webhook_replays_total") == count


def test_a_replay_that_is_not_complete_goes_on_with_the_same_selection(
    lab: Integrator, endpoint: str
) -> None:
    async def replayed(_endpoint: Any, _wanted: Any) -> Any:
        return SimpleNamespace(reopened=2, following=12)

    async def found() -> Any:
        log: Any = SimpleNamespace(replay=replayed)
        services = replace(running(lab).services, deliveries=log)
        body = b'{"status":"dead","from_seq":1}'
        kind = {"Content-Type": "application/json"}
        async with asked(lab, "POST", f"{endpoint}/replay", kind, services=services) as one:
            one.handler.data_received(body)
            one.handler.run()
            await one.exchange.wait_ended()
            return orjson.loads(one.exchange.body or b"")["next"]

    assert running(lab).call(found()) == {"status": "dead", "from_seq": 12}


def test_that_an_endpoint_is_read_is_noted(service: RunningService, lab: Integrator) -> None:
    made = lab.request("POST", BASE, {"url": "pull:a"}, {"Content-Type": "application/json"})

    def condition() -> bytes:
        (found,) = service.call(service.services.store.all_endpoints(of={lab.tenant.id}))
        return found.condition

    async def read() -> None:
        services = replace(service.services, clock=lambda: now_ms() + 2 * HOUR_MS)
        path = f"{BASE}/{made.json['id']}/events"
        async with asked(lab, "GET", path, services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()

    before = condition()
    service.call(read())

    assert before != condition()


@pytest.mark.parametrize("wait", [0, 1])
def test_a_client_waits_for_events_only_if_it_asks_for_that(
    lab: Integrator, endpoint: str, wait: int
) -> None:
    waited: list[Any] = []

    async def note(found: Any, **more: Any) -> None:
        waited.append((found.id, more))

    async def status() -> int:
        arrivals: Any = SimpleNamespace(wait=note)
        services = replace(running(lab).services, arrivals=arrivals)
        path = f"{endpoint}/events?after_seq=7&wait={wait}"
        async with asked(lab, "GET", path, services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert running(lab).call(status()) == 200
    how = {"client": lab.client_id, "after": 7, "seconds": 1}
    assert waited == ([(endpoint.rpartition("/")[2], how)] if wait else [])


@pytest.mark.parametrize(
    ("query", "about"),
    [
        ("deliveries", [3, 2, 1]),
        ("deliveries?limit=1", [3]),
        ("deliveries/{event}", [2]),
        ("events?after_seq=1", [2, 3]),
        ("events?after_seq=3", []),
        ("stats", []),
    ],
)
def test_what_is_shown_of_an_endpoint_is_recorded_with_what_it_is_about(
    lab: Integrator, sent: str, query: str, about: list[int]
) -> None:
    endpoint = sent.removesuffix("/deliveries")
    event = lab.get(f"{sent}?resource=Patient/2").json["deliveries"][0]["event_id"]
    lab.get(f"{endpoint}/{query.format(event=event)}")

    record = records_of_tenant(lab)[-1]
    name = f"Endpoint/{endpoint.rpartition('/')[2]}"
    assert record["what"] == [name, *(f"Patient/{number}" for number in about)]


@pytest.mark.parametrize(
    ("query", "found"), [("deliveries", []), ("deliveries/{event}", [9]), ("events", [8, 9])]
)
def test_patients_in_the_bodies_of_events_that_are_shown_are_recorded(
    lab: Integrator, endpoint: str, query: str, found: list[int]
) -> None:
    name = endpoint.rpartition("/")[2]
    made = [
        a_delivery(
            *(name, number),
            tenant=lab.tenant.id,
            resource="DiagnosticReport/1",
            body=b'{"data":{"subject":{"reference":"Patient/%d"}}}' % patient,
        )
        for number, patient in ((1, 8), (2, 9))
    ]
    running(lab).call(running(lab).services.store.append(made))

    assert lab.get(f"{endpoint}/{query.format(event=made[1].event_id)}").status == 200

    record = records_of_tenant(lab)[-1]
    assert record["what"] == [f"Endpoint/{name}", "DiagnosticReport/1"]
    assert record.get("patients", []) == [f"Patient/{number}" for number in found]


@pytest.mark.parametrize(("query", "count"), [("", 20), ("?limit=0", 20), ("?limit=21", 21)])
@pytest.mark.parametrize("name", ["deliveries", "events"])
def test_a_page_without_a_limit_has_twenty(
    lab: Integrator, endpoint: str, name: str, query: str, count: int
) -> None:
    made = [
        a_delivery(endpoint.rpartition("/")[2], number, tenant=lab.tenant.id, body=b"{}")
        for number in range(1, 26)
    ]
    running(lab).call(running(lab).services.store.append(made))

    assert len(lab.get(f"{endpoint}/{name}{query}").json[name]) == count


def test_a_page_of_events_takes_as_much_memory_as_all_of_its_bodies(
    lab: Integrator, endpoint: str
) -> None:
    memory = NotingMemory()

    made = [
        a_delivery(
            *(endpoint.rpartition("/")[2], number),
            tenant=lab.tenant.id,
            body=b'{"text":"%b"}' % (b"x" * 19_989),
        )
        for number in range(1, 6)
    ]

    async def status() -> int:
        services = replace(running(lab).services, response_memory=memory)
        await services.store.append(made)
        async with asked(lab, "GET", f"{endpoint}/events", services=services) as one:
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert running(lab).call(status()) == 200
    assert memory.asked_for == [(5 * 20_000, lab.tenant.id)]


def test_a_delivery_that_there_is_not_is_what_is_missing(lab: Integrator, endpoint: str) -> None:
    answer = lab.get(f"{endpoint}/deliveries/evt-1")

    assert (answer.status, answer.problems) == (404, ["record-unknown"])
    assert answer.issues[0]["diagnostics"] == "there is no delivery evt-1"


def test_a_replay_is_announced_before_it_is_made(lab: Integrator, endpoint: str) -> None:
    replay(lab, endpoint, {"status": "dead"})

    found = [(one["action"], one["status"]) for one in records_of_tenant(lab)[-2:]]
    assert found == [("delivery.replay", 102), ("delivery.replay", 200)]
