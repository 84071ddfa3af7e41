"""The phases of a request: what is refused when, what it holds, and how its answer leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.errors import NotPermitted
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.handlers.placement import LARGE
from tests.bodies import register_body
from tests.metrics import Moves
from tests.unit.web.handlers.asking import REPORTS, Asked, on_request, path_of, running

NOWHERE = f"{REPORTS}/00000000-0000-4000-8000-000000000000"
VALIDATE = f"{REPORTS}/$validate"
CHUNKED = {"Transfer-Encoding": "chunked"}


# Headers.


@pytest.mark.parametrize("path", [REPORTS, NOWHERE, "/nowhere"])
def test_each_answer_has_the_usual_headers(lab: Integrator, path: str) -> None:
    headers = lab.get(path, X_Request_Id="r-1").headers

    assert headers["server"] == "fhirpub"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"] == "r-1"
    assert headers["date"].endswith(" GMT")


def test_head_has_the_length_of_the_answer_and_no_body(lab: Integrator) -> None:
    read, head = (lab.request(method, REPORTS) for method in ("GET", "HEAD"))

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == read.headers["content-length"] == str(len(read.body))


def test_head_of_a_large_answer_has_no_body(lab: Integrator) -> None:
    location = lab.register(register_body(uuid4().hex, conclusion="x y " * 20_000)).headers[
        "location"
    ]

    head = lab.request("HEAD", location)

    assert int(head.headers["content-length"]) > LARGE
    assert (head.status, head.body) == (200, b"")


def test_an_empty_answer_has_no_length(lab: Integrator) -> None:
    path = path_of(lab.register(register_body(uuid4().hex)))

    found = [
        lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"}),
        lab.get(path, If_None_Match='W/"2"'),
    ]

    assert [answer.status for answer in found] == [204, 304]
    assert ["content-length" in answer.headers for answer in found] == [False, False]


def test_quotas_are_named_in_answers_and_refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    config = Config(quotas=QuotasConfig(client_requests_per_minute=1))
    clock = HandClock(1_795_000_000_000)
    folder = tmp_path_factory.mktemp("quotas")
    with RunningService(folder, config=config, clock=clock) as service:
        lab = service.integrator()

        answers = [lab.get(NOWHERE) for _ in range(2)]

    assert [answer.status for answer in answers] == [404, 429]
    assert ["ratelimit" in answer.headers for answer in answers] == [True, True]


# When a refusal leaves.


def bad(lab: Integrator, headers: dict[str, str]) -> tuple[int, int]:
    """Return the status before the body is here, and after."""

    async def use(one: Asked) -> tuple[int, int]:
        before = one.exchange.status
        if not before:
            one.handler.data_received(b"{}")
            one.handler.run()
            await one.exchange.wait_ended()
        return before, one.exchange.status

    found: tuple[int, int] = on_request(
        lab, use, "POST", VALIDATE, {"Content-Type": "text/plain", **headers}
    )
    return found


def test_a_refusal_waits_for_the_body(lab: Integrator) -> None:
    assert bad(lab, {"Content-Length": "2"}) == (0, 415)


@pytest.mark.parametrize("word", ["100-continue", "100-Continue"])
def test_a_refusal_leaves_at_once_for_a_client_that_waits_for_it(
    lab: Integrator, word: str
) -> None:
    assert bad(lab, {"Content-Length": "2", "Expect": word}) == (415, 415)


def test_a_fault_before_the_body_is_answered_as_one(lab: Integrator) -> None:
    async def use(one: Asked) -> int:
        one.handler._defer_refusal(RuntimeError())
        one.handler.run()
        await one.exchange.wait_ended()
        return one.exchange.status

    assert on_request(lab, use) == 500


def test_a_body_that_takes_too_long_is_refused(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[int, bytes]:
        one.handler.too_slow()
        return one.exchange.status, one.exchange.body or b""

    status, body = on_request(lab, use, "POST", VALIDATE, CHUNKED)

    assert status == 408
    seconds = f"{lab.service.config.limits.body_seconds:g}"
    assert f"the body was not here after {seconds} seconds; it may be sent again".encode() in body


def test_what_was_wrong_before_a_slow_body_is_what_it_is_refused_for(lab: Integrator) -> None:
    async def use(one: Asked) -> int:
        one.handler.too_slow()
        return one.exchange.status

    headers = {**CHUNKED, "Content-Type": "text/plain"}
    assert on_request(lab, use, "POST", VALIDATE, headers) == 415


def test_a_refusal_amid_the_body_is_kept(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[int, int]:
        one.handler.refuse(NotPermitted())
        before = one.exchange.status
        one.handler.run()
        await one.exchange.wait_ended()
        return before, one.exchange.status

    assert on_request(lab, use, "POST", VALIDATE, CHUNKED) == (0, 403)


# What a request holds.


@pytest.mark.parametrize(("headers", "timed"), [(CHUNKED, True), ({}, False)])
def test_the_time_of_a_body_runs_until_it_is_here(
    lab: Integrator, headers: dict[str, str], *, timed: bool
) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        since = one.handler.services.body_timeout._since
        begun = one.request in since
        one.handler.data_received(b"{}")
        one.handler.run()
        return begun, one.request in since

    assert on_request(lab, use, "POST", VALIDATE, headers) == (timed, False)


def test_a_request_is_in_flight_until_it_is_answered(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        in_flight = one.handler.services.in_flight
        begun = one.handler in in_flight
        one.handler.run()
        await one.exchange.wait_ended()
        await asyncio.sleep(0)
        return begun, one.handler in in_flight

    assert on_request(lab, use) == (True, False)


def test_a_client_that_leaves_amid_the_body_leaves_nothing_behind(lab: Integrator) -> None:
    async def use(one: Asked) -> list[bool]:
        services = one.handler.services
        one.handler.data_received(b" " * 100_000)

        def held() -> list[bool]:
            return [
                one.handler in services.in_flight,
                one.request in services.body_timeout._since,
                one.request in services.request_memory,
            ]

        before = held()
        one.handler.cancel()
        return before + held()

    found = on_request(lab, use, "POST", VALIDATE, CHUNKED)
    assert found == [True, True, True, False, False, False]


@pytest.fixture(scope="module")
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose clients may have one request in progress."""
    config = Config(quotas=QuotasConfig(client_requests_at_a_time=1))
    with RunningService(tmp_path_factory.mktemp("one"), config=config) as service:
        yield service


def test_a_request_that_is_answered_makes_room_for_the_next(
    one_at_a_time: RunningService,
) -> None:
    lab = one_at_a_time.integrator()

    assert [lab.get(NOWHERE).status for _ in range(3)] == [404] * 3


def test_a_request_that_is_cancelled_makes_room_for_the_next(
    one_at_a_time: RunningService,
) -> None:
    lab = one_at_a_time.integrator()

    async def use(one: Asked) -> int:
        inside = await asyncio.to_thread(lab.get, NOWHERE)
        one.handler.cancel()
        return inside.status

    assert on_request(lab, use) == 429
    assert lab.get(NOWHERE).status == 404


def test_an_answer_is_counted_with_its_route_and_status(lab: Integrator) -> None:
    moves = Moves(running(lab))

    lab.get(NOWHERE)

    assert moves.by("requests_total", method="GET", route=f"{REPORTS}/{{}}", status="404") == 1
