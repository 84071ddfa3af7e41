"""What an answer of the service contains, and a service that answers later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from fhirpub.console.internal import Answer
from tests.unit.console.test_internal import Handler, Service, a_client
from tests.unit.console.test_visit import CALLER


@pytest.mark.parametrize(
    ("status", "is_refusal"), [(200, False), (399, False), (400, True), (404, True), (503, True)]
)
def test_a_status_from_400_is_a_refusal(status: int, *, is_refusal: bool) -> None:
    assert Answer(status, {}, b"").is_refusal is is_refusal


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"issue":[]}'])
def test_an_answer_without_issues_names_no_problems(body: bytes) -> None:
    assert Answer(500, {}, body).problems == []


def test_an_answer_without_a_body_has_no_json_and_no_problems() -> None:
    answer = Answer(404, {}, b"")

    assert answer.json is None
    assert answer.problems == []


def test_the_problems_of_a_refusal_are_sentences_with_their_places() -> None:
    body = (
        b'{"issue":[{"diagnostics":"is wrong","expression":["a","b"]},'
        b'{"diagnostics":"no place"},{"code":"invalid"},{"code":"x","expression":[]}]}'
    )

    assert Answer(400, {}, body).problems == ["a, b: is wrong", "no place", "invalid", "x"]


def test_every_issue_of_an_answer_is_a_problem() -> None:
    body = b'{"issue":[{"diagnostics":"first"},{"diagnostics":"second"}]}'

    assert Answer(400, {}, body).problems == ["first", "second"]


class Later(Handler):
    """A handler whose every step ends later."""

    steps: list[str]

    async def _later(self, name: str) -> None:
        await asyncio.sleep(0)
        self.steps.append(name)

    def begin(self) -> Awaitable[None]:
        self.steps = []
        return self._later("begin")

    def data_received(self, chunk: bytes) -> Awaitable[None]:
        super().data_received(chunk)
        return self._later("data")

    def answer(self) -> Awaitable[None]:
        async def answered() -> None:
            await self._later("answer")
            Handler.answer(self)

        return answered()


async def test_each_step_of_a_request_is_waited_for() -> None:
    service = Service(b'{"a":1}')
    service.handler = lambda request, _services: Later(service, request)  # type: ignore[method-assign]

    answer = await a_client(service).ask(CALLER, "POST", "/x", {"b": 2})

    (asked,) = service.asked
    assert isinstance(asked, Later)
    assert asked.steps == ["begin", "data", "answer"]
    assert answer.json == {"a": 1}
