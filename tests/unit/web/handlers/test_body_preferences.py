"""What a client prefers to get for a body, and how long the answer waits for webhooks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.interactions.context import Context
from fhirpub.runtime.stages import Stages
from fhirpub.testing.service import Answer, Integrator
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.handlers.placement import DENSE, LARGE, LARGE_STORED, VERY_LARGE
from tests.bodies import register_body
from tests.unit.web.handlers.asking import REPORTS, Places, asked, running

VALIDATE = f"{REPORTS}/$validate"


def register(lab: Integrator, prefer: str, accept: str = "*/*") -> Answer:
    return lab.register(register_body(uuid4().hex), Prefer=prefer, Accept=accept)


def test_without_a_preference_all_parameters_are_answered(lab: Integrator) -> None:
    answer = register(lab, "")

    assert (answer.status, answer.json["resourceType"]) == (201, "Parameters")
    assert "preference-applied" not in answer.headers


def test_minimal_is_answered_without_a_body(lab: Integrator) -> None:
    answer = register(lab, "return=minimal")

    assert (answer.status, answer.body) == (201, b"")
    assert answer.headers["preference-applied"] == "return=minimal"
    assert answer.headers["cache-control"] == "private, no-cache"


def test_representation_is_answered_with_all_parameters(lab: Integrator) -> None:
    answer = register(lab, "return=representation")

    assert answer.json["resourceType"] == "Parameters"
    assert answer.headers["preference-applied"] == "return=representation"


def test_an_outcome_is_answered_with_the_issues_alone(lab: Integrator) -> None:
    answer = register(lab, "return=OperationOutcome")

    assert (answer.status, answer.json["resourceType"]) == (201, "OperationOutcome")
    assert answer.headers["preference-applied"] == "return=OperationOutcome"


def test_an_unknown_preference_is_not_confirmed(lab: Integrator) -> None:
    answer = register(lab, "return=everything")

    assert "preference-applied" not in answer.headers
    assert answer.json["resourceType"] == "Parameters"


@pytest.mark.parametrize(
    ("prefer", "name"), [("", b"<Parameters"), ("return=OperationOutcome", b"<OperationOutcome")]
)
def test_a_registration_is_answered_in_xml_for_a_client_that_wants_it(
    lab: Integrator, prefer: str, name: bytes
) -> None:
    assert name in register(lab, prefer, "application/fhir+xml").body


class Sending:
    """Webhooks that ask for a pause."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked: list[str] = []

    def pause_for(self, tenant: str) -> float:
        self.asked.append(tenant)
        return self.seconds


@pytest.fixture
def sending(lab: Integrator) -> Iterator[Sending]:
    services, made = running(lab).services, Sending(0.05)
    before = services.sending
    object.__setattr__(services, "sending", made)
    yield made
    object.__setattr__(services, "sending", before)


def test_a_registration_waits_as_long_as_the_webhooks_of_its_tenant_ask(
    lab: Integrator, sending: Sending
) -> None:
    begun = time.monotonic()

    assert register(lab, "").status == 201
    assert sending.asked == [lab.tenant.id]
    assert time.monotonic() - begun >= sending.seconds


def test_a_repeated_registration_waits_for_no_webhooks(lab: Integrator, sending: Sending) -> None:
    body = register_body(uuid4().hex)
    for _ in range(2):
        assert lab.register(body).status == 201

    assert sending.asked == [lab.tenant.id]


# Where a body is computed.


def on_handler(lab: Integrator, ask: Any) -> Any:
    async def found() -> Any:
        async with asked(lab, "POST", VALIDATE, {"Transfer-Encoding": "chunked"}) as one:
            return ask(one.body_handler)

    return running(lab).call(found())


def received(handler: BodyHandler, *pieces: bytes) -> BodyHandler:
    for piece in pieces:
        handler.data_received(piece)
    return handler


@pytest.mark.parametrize(("values", "few"), [(DENSE, True), (DENSE + 1, False)])
def test_a_body_with_many_values_is_dense(lab: Integrator, values: int, *, few: bool) -> None:
    def ask(handler: BodyHandler) -> tuple[bool, bool]:
        received(handler, b"," * (values - 10), b"," * 10)
        return handler.has_few_values, handler._is_dense(10)

    assert on_handler(lab, ask) == (few, not few)


@pytest.mark.parametrize(
    ("kind", "values"), [("application/fhir+xml", 2), ("application/fhir+json", 1)]
)
def test_values_are_counted_as_the_type_of_the_body_has_them(
    lab: Integrator, kind: str, values: int
) -> None:
    async def counted() -> int:
        given = {"Transfer-Encoding": "chunked", "Content-Type": kind}
        async with asked(lab, "POST", VALIDATE, given) as one:
            return received(one.body_handler, b'<a b="1"/>')._values

    assert running(lab).call(counted()) == values


@pytest.mark.parametrize(
    ("size", "stored", "dense"),
    [
        (VERY_LARGE, b"", False),
        (VERY_LARGE + 1, b"", True),
        (0, b" " * LARGE_STORED, False),
        (0, b" " * (LARGE_STORED + 1), True),
        (0, b"," * DENSE, False),
        (0, b"," * (DENSE + 1), True),
    ],
)
def test_what_is_very_large_or_stored_with_many_values_is_dense(
    lab: Integrator, size: int, stored: bytes, *, dense: bool
) -> None:
    assert on_handler(lab, lambda handler: handler._is_dense(size, stored)) is dense


@pytest.mark.parametrize(("size", "small"), [(LARGE, True), (LARGE + 1, False)])
def test_a_small_body_is_for_the_event_loop(lab: Integrator, size: int, *, small: bool) -> None:
    pieces = [b" " * (size - 5), b" " * 5]

    assert on_handler(lab, lambda handler: handler.is_for_loop(pieces)) is small


def test_a_small_body_with_many_values_is_not_for_the_event_loop(lab: Integrator) -> None:
    body = b"," * (DENSE + 1)

    assert not on_handler(lab, lambda one: received(one, body).is_for_loop([body]))


def test_a_body_is_taken_once_and_in_order(lab: Integrator) -> None:
    def ask(handler: BodyHandler) -> list[bytes]:
        received(handler, b"a", b"b")
        return [handler.take_body(), handler.take_body()]

    assert on_handler(lab, ask) == [b"ab", b""]


def test_the_pieces_of_a_body_are_taken_once(lab: Integrator) -> None:
    def ask(handler: BodyHandler) -> list[list[bytes]]:
        received(handler, b"a", b"b")
        return [handler.take_chunks(), handler.take_chunks()]

    assert on_handler(lab, ask) == [[b"a", b"b"], []]


def test_what_comes_after_a_refusal_is_not_kept(lab: Integrator) -> None:
    def ask(handler: BodyHandler) -> list[bytes]:
        received(handler, b"a").refuse(ValueError())
        return received(handler, b"b").take_chunks()

    assert on_handler(lab, ask) == []


def cut(lab: Integrator, headers: dict[str, str], *pieces: bytes) -> Any:
    """Return whether a body is computed without its documents."""

    async def found() -> Any:
        given = {"Transfer-Encoding": "chunked", **headers}
        async with asked(lab, "POST", VALIDATE, given) as one:
            handler = received(one.body_handler, *pieces)
            return await handler.compute_cut(lambda *_cut: "cut", handler.take_chunks())

    return running(lab).call(found())


def test_a_large_body_is_computed_without_its_documents(lab: Integrator) -> None:
    body = b'{"resourceType":"Binary","data":"' + b"QUJD" * 30_000 + b'"}'

    assert cut(lab, {}, body) == "cut"


def test_a_body_that_stays_large_without_documents_is_computed_as_a_whole(
    lab: Integrator,
) -> None:
    assert cut(lab, {}, b'{"a":"' + b"x y " * 30_000 + b'"}') is None


def test_a_small_body_is_computed_as_a_whole(lab: Integrator) -> None:
    assert cut(lab, {}, b'{"data":"QUJD"}') is None


def test_a_body_in_xml_is_computed_as_a_whole(lab: Integrator) -> None:
    body = b'{"resourceType":"Binary","data":"' + b"QUJD" * 30_000 + b'"}'

    assert cut(lab, {"Content-Type": "application/fhir+xml"}, body) is None


def test_a_large_body_with_many_values_is_computed_as_a_whole(lab: Integrator) -> None:
    body = b'{"data":"' + b"QUJD" * 30_000 + b'"' + b"," * (DENSE + 1)

    assert cut(lab, {}, body) is None


def test_a_clock_that_is_not_the_real_one_holds_where_a_body_is_computed(lab: Integrator) -> None:
    def work(context: Context, _body: bytes) -> Stages[int]:
        yield
        return context.clock()

    async def found() -> int:
        services = running(lab).services
        places: Any = Places(services.context)
        context = replace(services.context, clock=lambda: 5)
        services = replace(services, context=context, threads=places, processes=places)
        async with asked(lab, "POST", VALIDATE, services=services) as one:
            stored = b"," * (DENSE + 1)
            found = await one.body_handler.compute_chunks(work, [b"x"], stored=stored)
            assert [place for place, _owner in places.seen] == ["process"]
            return found

    assert running(lab).call(found()) == 5
