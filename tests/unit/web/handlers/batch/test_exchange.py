"""The room of the answers of a batch, and the answer to an entry that is kept in it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from tornado.httputil import ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.exchange import Exchange, Headers
from fhirpub.web.handlers.batch.exchange import AnswerBytes, EntryExchange

OK = ResponseStartLine("HTTP/1.1", 200, "OK")


def exchange_in(stream: IOStream, room: AnswerBytes) -> EntryExchange:
    connection = SimpleNamespace(stream=stream, context="peer")
    return EntryExchange(cast("Exchange", connection), room)


def length(size: int) -> Headers:
    return Headers({"Content-Length": str(size)})


def test_the_last_byte_of_the_room_can_be_taken() -> None:
    room = AnswerBytes(10, used=4)

    assert (room.take(6), room.used) == (True, 10)


def test_one_byte_beyond_the_room_is_refused_and_takes_nothing() -> None:
    room = AnswerBytes(10, used=4)

    assert (room.take(7), room.used) == (False, 4)


def test_the_room_is_used_up_by_its_last_byte() -> None:
    assert [AnswerBytes(10, used=used).is_used_up for used in (9, 10)] == [False, True]


async def test_the_pieces_of_an_answer_are_joined_in_order(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(6))

    exchange.write_headers(OK, length(6), b"ab")
    exchange.write(memoryview(b"cd"))
    exchange.write(b"ef")
    exchange.finish()

    assert (exchange.status, exchange.body, exchange.is_complete) == (200, b"abcdef", True)


async def test_an_answer_takes_its_length_of_the_room(stream: IOStream) -> None:
    room = AnswerBytes(10)

    exchange_in(stream, room).write_headers(OK, length(7))

    assert room.used == 7


async def test_an_answer_without_a_length_takes_nothing(stream: IOStream) -> None:
    room = AnswerBytes(10, used=10)
    exchange = exchange_in(stream, room)

    exchange.write_headers(ResponseStartLine("HTTP/1.1", 204, "No Content"), Headers())
    exchange.finish()

    assert (exchange.body, room.used) == (b"", 10)


async def test_an_answer_without_room_has_no_body(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(3))

    exchange.write_headers(OK, length(4), b"abcd")
    exchange.finish()

    assert exchange.body is None


async def test_more_of_an_answer_without_room_is_not_taken(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(3))
    exchange.write_headers(OK, length(4))

    with pytest.raises(StreamClosedError):
        exchange.write(b"abcd")


async def test_an_answer_that_is_closed_early_is_not_complete(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(9))
    exchange.write_headers(OK, length(4), b"ab")

    exchange.close()
    await exchange.wait_ended()

    assert (exchange.body, exchange.is_complete) == (b"ab", False)


async def test_an_answer_is_fhir_unless_its_type_is_another(stream: IOStream) -> None:
    found = []
    for kind in ({}, {"Content-Type": "application/fhir+json"}, {"Content-Type": "text/html"}):
        exchange = exchange_in(stream, AnswerBytes(9))
        exchange.write_headers(OK, Headers(kind))
        found.append(exchange.is_fhir)

    assert found == [True, True, False]


async def test_later_changes_of_the_headers_are_not_those_of_the_answer(stream: IOStream) -> None:
    exchange, headers = exchange_in(stream, AnswerBytes(9)), length(0)
    exchange.write_headers(OK, headers)

    headers["ETag"] = "later"

    assert "ETag" not in exchange.headers


async def test_a_handler_need_not_wait_for_what_it_wrote(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(4))

    begun = exchange.write_headers(OK, length(4), b"ab")
    more = exchange.write(b"cd")

    assert (begun.done(), more.done()) == (True, True)


async def test_an_answer_has_not_ended_before_it_is_finished(stream: IOStream) -> None:
    exchange = exchange_in(stream, AnswerBytes(6))
    ending = asyncio.create_task(exchange.wait_ended())
    await asyncio.sleep(0)
    exchange.write_headers(OK, length(2), b"ab")
    await asyncio.sleep(0)
    before = ending.done()

    exchange.finish()
    await ending

    assert not before
