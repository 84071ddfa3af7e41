"""How an answer leaves: in pieces, counted, and with what it releases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import BlobInfo
from fhirpub.testing.service import Integrator
from fhirpub.web.admission.loop_turns import LoopTurns
from fhirpub.web.error_mapping import TooSlow
from fhirpub.web.handlers.placement import LARGE
from fhirpub.web.message.response_body import BlobSlice, ResponseBody
from tests.log_lines import caught_lines
from tests.metrics import Moves
from tests.unit.web.handlers.asking import REPORTS, Asked, asked, on_request, running


@pytest.mark.parametrize(("size", "pieces"), [(LARGE, 1), (LARGE + 1, 2), (3 * LARGE, 3)])
def test_a_large_answer_leaves_in_pieces(lab: Integrator, size: int, pieces: int) -> None:
    async def use(one: Asked) -> list[int]:
        one.handler.finish(b"x" * size)
        await one.exchange.wait_ended()
        return [len(piece) for piece in one.exchange._pieces]

    found = on_request(lab, use)
    assert (len(found), sum(found), max(found) <= LARGE) == (pieces, size, True)


def test_an_answer_is_marked_as_sent_once_all_of_it_was(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        before = one.handler._is_sent
        one.handler.finish(b"x" * 2 * LARGE)
        await one.exchange.wait_ended()
        return before, one.handler._is_sent

    assert on_request(lab, use) == (False, True)


@pytest.mark.parametrize("fault", [StoreUnavailable("x"), RuntimeError()], ids=["away", "fault"])
def test_an_answer_that_cannot_be_read_to_its_end_is_cut_off(
    lab: Integrator, fault: Exception
) -> None:
    blob = BlobInfo("0" * 64, "text/plain", LARGE * 2, None)

    async def failing(_blob: BlobInfo, _part: slice) -> AsyncGenerator[bytes, None]:
        yield b"x" * LARGE
        raise fault

    async def use(one: Asked) -> tuple[bool, bool]:
        body = ResponseBody([BlobSlice(blob, slice(0, blob.size))], failing)
        one.handler.finish_with(body)
        await one.exchange.wait_ended()
        await asyncio.sleep(0)
        return one.exchange.is_complete, one.handler in one.handler.services.in_flight

    with caught_lines() as caught:
        name = uuid4().hex
        found = on_request(lab, use, headers={"X-Request-Id": name})

        assert found == (False, False)
        assert (caught.of(name)["event"], caught.of(name)["level"]) == ("cut off", "error")


def test_the_memory_of_a_large_answer_is_released_when_it_has_left(lab: Integrator) -> None:
    async def use(one: Asked) -> list[bool]:
        memory = one.handler.services.response_memory
        memory.acquire(one.request, 10, owner=lab.tenant.id)
        one.handler.finish(b"x" * 2 * LARGE)
        begun = one.request in memory
        await one.exchange.wait_ended()
        await asyncio.sleep(0)
        return [begun, one.request in memory]

    assert on_request(lab, use) == [True, False]


def test_the_memory_of_a_small_answer_is_released_at_once(lab: Integrator) -> None:
    async def use(one: Asked) -> bool:
        memory = one.handler.services.response_memory
        memory.acquire(one.request, 10, owner=lab.tenant.id)
        one.handler.finish(b"x")
        return one.request in memory

    assert on_request(lab, use) is False


def test_the_owner_of_a_request_is_its_tenant(lab: Integrator) -> None:
    async def use(one: Asked) -> str:
        return one.handler.owner

    assert on_request(lab, use) == lab.tenant.id


def test_a_request_without_a_caller_has_no_owner(lab: Integrator) -> None:
    async def use(one: Asked) -> str:
        return one.handler.owner

    assert on_request(lab, use, path="/health/live") == ""


def test_a_short_body_leaves_at_once(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bytes | None, bool]:
        one.handler.finish_with(ResponseBody([b"ab", b"c"], one.handler.read_pieces))
        return one.exchange.body, one.exchange.is_complete

    assert on_request(lab, use) == (b"abc", True)


def test_an_answer_to_head_is_handed_in_without_its_body(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bytes | None, str]:
        one.handler.finish(b"abc")
        return one.exchange.body, one.exchange.headers["Content-Length"]

    assert on_request(lab, use, "HEAD") == (b"", "3")


def test_an_answer_releases_the_memory_of_the_body(lab: Integrator) -> None:
    async def use(one: Asked) -> bool:
        memory = one.handler.services.request_memory
        memory.acquire(one.request, 10, owner=lab.tenant.id)
        one.handler.finish(b"x")
        return one.request in memory

    assert on_request(lab, use) is False


def sent(future: asyncio.Future[None]) -> None:
    future.set_result(None)


def failed(future: asyncio.Future[None]) -> None:
    future.set_exception(OSError())


def cancelled(future: asyncio.Future[None]) -> None:
    future.cancel()


@pytest.mark.parametrize(("end", "is_sent"), [(sent, True), (failed, False), (cancelled, False)])
def test_an_answer_that_does_not_leave_was_not_sent(
    lab: Integrator, end: Callable[[asyncio.Future[None]], None], *, is_sent: bool
) -> None:
    async def use(one: Asked) -> bool:
        leaving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        end(leaving)
        one.handler._leave_after(leaving)
        return one.handler._is_sent

    assert on_request(lab, use) is is_sent


def test_the_time_of_an_answer_is_counted_in_seconds(lab: Integrator) -> None:
    moves = Moves(running(lab))

    lab.get(REPORTS)

    route = {"method": "GET", "route": REPORTS}
    assert moves.by("request_seconds_count", **route) == 1
    assert 0 < moves.by("request_seconds_sum", **route) < 5


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_line_of_a_request_has_the_bytes_that_were_sent(lab: Integrator, method: str) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        answer = lab.request(method, REPORTS, headers={"X-Request-Id": name})
        line = caught.of(name)

    assert line["bytes"] == len(answer.body)
    assert bool(answer.body) is (method == "GET")


def test_a_client_that_takes_no_more_of_a_large_answer_is_disconnected(lab: Integrator) -> None:
    async def use(one: Asked) -> list[bool]:
        one.exchange._room.most = 0
        one.handler.finish_with(ResponseBody([b"x" * 2 * LARGE], one.handler.read_pieces))
        await one.handler._sending
        ended = one.exchange._ended.done()
        return [ended, one.exchange.is_complete, one.handler in one.handler.services.in_flight]

    assert on_request(lab, use) == [True, False, False]


def test_a_failure_amid_an_answer_ends_the_request(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        one.handler._answered = True
        one.handler.fail(RuntimeError())
        return one.exchange._ended.done(), one.handler in one.handler.services.in_flight

    assert on_request(lab, use) == (True, False)


def test_a_refusal_begins_with_none_of_the_headers_of_what_failed(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[int, bool, str]:
        one.handler.headers["ETag"] = 'W/"1"'
        one.handler.fail(StoreUnavailable("away"))
        headers = one.exchange.headers
        return one.exchange.status, "ETag" in headers, headers["X-Request-Id"]

    assert on_request(lab, use, headers={"X-Request-Id": "r-1"}) == (503, False, "r-1")


def test_the_time_of_a_body_ends_with_a_refusal_amid_it(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        since = one.handler.services.body_timeout._since
        begun = one.request in since
        one.handler.refuse_now(StoreUnavailable("away"))
        return begun, one.request in since

    headers = {"Transfer-Encoding": "chunked"}
    assert on_request(lab, use, "POST", f"{REPORTS}/$validate", headers) == (True, False)


def test_a_client_that_reads_nothing_is_disconnected_and_is_no_fault(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool, bool, object]:
        config = one.handler.services.config
        config = replace(config, limits=replace(config.limits, body_seconds=0.01))
        one.handler.services = replace(one.handler.services, config=config)
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        one.exchange._sent = never
        one.handler.finish_with(ResponseBody([b"x" * 2 * LARGE], one.handler.read_pieces))
        await one.handler._sending
        ended = one.exchange._ended.done()
        return ended, one.exchange.is_complete, never.cancelled(), one.handler._problem

    assert on_request(lab, use) == (True, False, False, None)


def test_a_request_is_answered_in_a_turn_of_its_tenant(lab: Integrator) -> None:
    owners: list[str] = []

    class Noting(LoopTurns):
        def begin(self, owner: str, request: Callable[[], None]) -> None:
            owners.append(owner)
            super().begin(owner, request)

    async def use() -> None:
        services = replace(running(lab).services, loop_turns=Noting())
        for path in (REPORTS, "/health/live"):
            async with asked(lab, "GET", path, services=services) as one:
                one.handler.run()
                await one.exchange.wait_ended()

    running(lab).call(use())
    assert owners == [lab.tenant.id, ""]


def test_each_byte_of_an_answer_is_sent_however_it_is_divided(lab: Integrator) -> None:
    parts = [b"0123456789", bytes(range(256)) * 1_000, b"end"]

    async def use(one: Asked) -> bytes:
        one.handler.finish_with(ResponseBody(parts, one.handler.read_pieces))
        await one.exchange.wait_ended()
        return one.exchange.body or b""

    assert on_request(lab, use) == b"".join(parts)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_has_its_time_until_it_is_complete(lab: Integrator, method: str) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        since = one.handler.services.body_timeout._since
        begun = one.request in since
        one.handler.data_received(b"{}")
        later = one.handler.answer()
        complete = one.request in since
        if later is not None:
            await later
        return begun, complete

    path = REPORTS if method == "GET" else f"{REPORTS}/$validate"
    assert on_request(lab, use, method, path, {"Content-Length": "2"}) == (True, False)


def test_nothing_is_kept_of_a_body_that_was_refused_amid_it(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[object, list[bytes]]:
        problem = TooSlow("it took too long")
        one.handler.data_received(b"{")
        one.handler.refuse_now(problem)
        one.handler.data_received(b"}")
        return one.handler._refusal is problem, one.body_handler.take_chunks()

    headers = {"Transfer-Encoding": "chunked"}
    assert on_request(lab, use, "POST", f"{REPORTS}/$validate", headers) == (True, [])


def test_a_body_has_no_time_any_more_once_the_answer_is_certain(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[bool, bool]:
        since = one.handler.services.body_timeout._since
        begun = one.request in since
        one.handler.decide()
        return begun, one.request in since

    headers = {"Transfer-Encoding": "chunked"}
    assert on_request(lab, use, "POST", f"{REPORTS}/$validate", headers) == (True, False)
