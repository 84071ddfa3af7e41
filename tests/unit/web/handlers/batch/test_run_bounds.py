"""Entries of a batch: what they may refer to, their trace, and answers that have no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from tornado.httputil import ResponseStartLine

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.http.exchange import Headers
from fhirpub.testing.service import Integrator
from fhirpub.web.handlers.batch.run import BatchRun
from tests.batches import BASE, TYPE, UNKNOWN, bundle, entry, registering, send, status
from tests.bodies import register_body
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import asked, running

URN = f"urn:uuid:{UNKNOWN}"
TRACE = "a" * 32


def test_an_entry_that_refers_to_itself_relies_on_no_other(lab: Integrator, value: str) -> None:
    body = register_body(value, result=[{"reference": URN}])

    (answer,) = send(lab, entry("POST", f"{TYPE}/$register", body, full_url=URN))

    assert status(answer) == 201


def test_an_entry_is_of_the_trace_of_its_batch(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        parent = f"00-{TRACE}-{'b' * 16}-01"
        read = entry("GET", f"{TYPE}/{UNKNOWN}")
        send(lab, read, X_Request_Id=name, Traceparent=parent)
        line = caught.of(f"{name}-0")

    assert line["trace_id"] == TRACE


def test_writes_are_made_though_there_is_no_room_for_answers(lab: Integrator, value: str) -> None:
    async def answers() -> list[Any]:
        async with asked(lab, "POST", BASE) as one:
            handler = cast("Any", one.handler)
            handler.data_received(dumps(bundle(registering(value), entry("GET", TYPE))))
            run = BatchRun(handler, await handler._read(), handler.find_handler)
            run._room.used = run._room.most
            return [loads(answer) for answer in await run.answers() or ()]

    assert [status(answer) for answer in running(lab).call(answers())] == [201, 413]


def test_entries_that_have_not_begun_are_left_out_once_the_client_has_left(
    lab: Integrator,
) -> None:
    async def begun() -> tuple[Any, int, int]:
        async with asked(lab, "POST", BASE) as one:
            handler = cast("Any", one.handler)
            handler.data_received(dumps(bundle(*[entry("GET", f"{TYPE}/{UNKNOWN}")] * 100)))
            found: list[Any] = []

            def find_handler(request: Any, services: Any) -> Any:
                found.append(request)
                one.exchange.stream.close()
                return handler.find_handler(request, services)

            run = BatchRun(handler, await handler._read(), find_handler)
            answers = await run.answers()
            turns = handler.services.entry_turns
            return answers, len(found), turns._taken[lab.tenant.id]

    answers, count, taken = running(lab).call(begun())
    assert (answers, taken) == (None, 0)
    assert count < 50


def test_a_reference_that_no_entry_explains_relies_on_no_entry(
    lab: Integrator, value: str
) -> None:
    body = register_body(value, result=[{"reference": URN}])

    (answer,) = send(lab, entry("POST", f"{TYPE}/$register", body))

    assert status(answer) == 201


def test_an_address_below_the_base_without_fhir_is_refused(lab: Integrator) -> None:
    (answer,) = send(lab, entry("GET", ".well-known/smart-configuration"))

    assert status(answer) == 406
    assert "resource" not in answer


def test_an_answer_that_breaks_off_is_a_fault_of_the_service(lab: Integrator) -> None:
    def find_handler(request: Any, _services: Any) -> Any:
        def answer() -> None:
            line = ResponseStartLine("HTTP/1.1", 200, "OK")
            request.connection.write_headers(line, Headers({"Content-Length": "9"}), b"{}")
            request.connection.close()

        return SimpleNamespace(conditions=frozenset(), begin=lambda: None, answer=answer)

    async def found() -> list[Any]:
        async with asked(lab, "POST", BASE) as one:
            handler = cast("Any", one.handler)
            handler.data_received(dumps(bundle(entry("GET", TYPE))))
            run = BatchRun(handler, await handler._read(), find_handler)
            return [loads(answer) for answer in await run.answers() or ()]

    (answer,) = running(lab).call(found())
    assert (status(answer), "resource" in answer) == (500, False)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_read_whose_answer_has_no_room_is_refused(lab: Integrator, method: str) -> None:
    async def answers() -> list[Any]:
        async with asked(lab, "POST", BASE) as one:
            handler = cast("Any", one.handler)
            handler.data_received(dumps(bundle(entry(method, TYPE))))
            run = BatchRun(handler, await handler._read(), handler.find_handler)
            run._room.used = run._room.most - 1
            return [loads(answer) for answer in await run.answers() or ()]

    assert [status(answer) for answer in running(lab).call(answers())] == [413]


def test_an_entry_that_relies_on_an_update_is_refused(lab: Integrator, value: str) -> None:
    change = {"resourceType": TYPE, "status": "amended"}
    body = register_body(value, result=[{"reference": URN}])

    answers = send(
        lab,
        entry("PATCH", f"{TYPE}/{UNKNOWN}", change, full_url=URN),
        entry("POST", f"{TYPE}/$register", body),
    )

    assert [status(answer) for answer in answers] == [404, 400]
