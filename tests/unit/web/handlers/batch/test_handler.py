"""A batch as a whole: its form, its memory, its answer, and a client that leaves."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import pytest

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.testing.service import Integrator
from fhirpub.web.admission.memory_budget import MemoryBudget
from tests.batches import BASE, TYPE, UNKNOWN, bundle, entry, registering, send, statuses
from tests.unit.web.handlers.asking import asked, running
from tests.waiting import until

READ = entry("GET", f"{TYPE}/{UNKNOWN}")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": "application/fhir+xml"}, 415),
        ({"Accept": "application/fhir+xml"}, 406),
        ({"Accept": "image/png"}, 406),
        ({"Accept": "*/*"}, 200),
    ],
)
def test_a_batch_is_json_and_so_is_its_answer(
    lab: Integrator, headers: dict[str, str], status: int
) -> None:
    assert lab.request("POST", BASE, bundle(READ), headers).status == status


@pytest.mark.parametrize("kind", ["transaction", "collection", "searchset"])
def test_another_bundle_is_refused_as_a_whole(lab: Integrator, kind: str) -> None:
    value = uuid4().hex

    answer = lab.request("POST", BASE, bundle(registering(value), type=kind))

    assert answer.status >= 400
    assert answer.json["resourceType"] == "OperationOutcome"
    assert lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"] == 0


def test_an_empty_batch_has_an_empty_answer(lab: Integrator) -> None:
    body = {"resourceType": "Bundle", "type": "batch"}

    answer = lab.request("POST", BASE, body)

    assert (answer.status, answer.json) == (200, body | {"type": "batch-response"})


def test_a_pretty_answer_has_the_same_content(lab: Integrator) -> None:
    plain, pretty = (
        lab.request("POST", f"{BASE}{query}", bundle(entry("GET", "metadata")))
        for query in ("", "?_pretty=true")
    )

    assert pretty.body.count(b"\n") > 100 > plain.body.count(b"\n")
    assert pretty.json["entry"][0]["resource"] == plain.json["entry"][0]["resource"]


def test_a_large_answer_is_in_gzip_for_a_client_that_accepts_it(lab: Integrator) -> None:
    several = bundle(*[entry("GET", "metadata")] * 3)

    answer = lab.request("POST", BASE, several, {"Accept-Encoding": "gzip"})

    assert answer.headers["content-encoding"] == "gzip"
    assert len(cast("Any", loads(gzip.decompress(answer.body)))["entry"]) == 3


def test_a_large_batch_is_read(lab: Integrator) -> None:
    several = [registering(uuid4().hex, conclusion="x y " * 10_000) for _ in range(3)]

    assert statuses(send(lab, *several)) == [201] * 3


def test_an_entry_that_is_large_is_read(lab: Integrator) -> None:
    assert statuses(send(lab, registering(uuid4().hex, conclusion="x y " * 30_000))) == [201]


def test_many_entries_are_read(lab: Integrator) -> None:
    assert statuses(send(lab, *[READ] * 300)) == [404] * 300


def test_the_memory_of_answers_is_held_for_the_tenant_until_they_have_left(
    lab: Integrator,
) -> None:
    async def held() -> list[Any]:
        async with asked(lab, "POST", BASE) as one:
            memory = one.handler.services.batch_memory
            one.handler.data_received(dumps(bundle(READ)))
            answering = one.handler.answer()
            assert answering is not None
            task = asyncio.ensure_future(answering)
            while one.request not in memory:
                await asyncio.sleep(0)
            found = memory._held[one.request]
            await task
            await one.exchange.wait_ended()
            await asyncio.sleep(0)
            return [found.owner, found.size, one.request in memory]

    size = lab.service.config.batch.answer_bytes
    assert running(lab).call(held()) == [lab.tenant.id, size, False]


def test_a_batch_without_memory_for_its_answers_is_busy(lab: Integrator) -> None:
    async def status() -> int:
        memory = MemoryBudget(10, patience_seconds=0.02)
        services = replace(running(lab).services, batch_memory=memory)
        async with asked(lab, "GET", "/health/live") as other:
            memory.acquire(other.request, 10, owner="other")
            async with asked(lab, "POST", BASE, services=services) as one:
                one.handler.data_received(dumps(bundle(READ)))
                one.handler.run()
                await one.exchange.wait_ended()
                return one.exchange.status

    assert running(lab).call(status()) == 503


def test_entries_do_not_begin_once_the_client_has_left(lab: Integrator) -> None:
    value = uuid4().hex

    async def answered() -> list[Any]:
        async with asked(lab, "POST", BASE) as one:
            one.handler.data_received(dumps(bundle(registering(value))))
            one.exchange.stream.close()
            one.handler.run()
            await one.exchange.wait_ended()
            in_flight = one.handler in one.handler.services.in_flight
            return [one.exchange.status, in_flight]

    assert running(lab).call(answered()) == [0, False]
    assert lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"] == 0


def test_a_batch_needs_a_token(lab: Integrator) -> None:
    assert lab.service.request("POST", BASE, dumps(bundle(READ))).status == 401


def test_a_batch_whose_client_leaves_while_it_waits_for_memory_does_nothing(
    lab: Integrator,
) -> None:
    value = uuid4().hex

    async def answered() -> list[Any]:
        memory = MemoryBudget(10, patience_seconds=60)
        services = replace(running(lab).services, batch_memory=memory)
        async with asked(lab, "GET", "/health/live") as other:
            memory.acquire(other.request, 10, owner="other")
            async with asked(lab, "POST", BASE, services=services) as one:
                one.handler.data_received(dumps(bundle(registering(value))))
                one.handler.run()
                await until(lambda: one.request in memory._queue)
                one.exchange.stream.close()
                memory.release(other.request)
                await one.exchange.wait_ended()
                return [one.exchange.status, one.handler in services.in_flight]

    assert running(lab).call(answered()) == [0, False]
    assert lab.get(f"{BASE}/{TYPE}?_summary=count").json["total"] == 0
