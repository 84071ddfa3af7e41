"""What a page works with: addresses, fields of a form, and the answers of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.console.internal import Answer
from fhirpub.console.sessions import Person, Session
from fhirpub.console.visit import PageRefused, ServiceRefused, Visit, address, moment_in_utc
from fhirpub.tenant import Tenant

CALLER = Caller(tenant=Tenant.new("Lab", created=5), client_id="c")


class Service:
    """Answers requests of pages, and notes them."""

    received = 0

    def __init__(self, status: int = 200, body: bytes = b'{"a":1}') -> None:
        self.answer = Answer(status, {}, body)
        self.asked: list[tuple[Any, ...]] = []

    async def get(
        self, caller: Caller, path: str, query: Sequence[tuple[str, str]] = ()
    ) -> Answer:
        self.asked.append((caller, "GET", path, query))
        return self.answer

    async def ask(
        self, caller: Caller, method: str, target: str, body: Mapping[str, Any] | None = None
    ) -> Answer:
        self.asked.append((caller, method, target, body))
        return self.answer


def a_session(caller: Caller | None = CALLER) -> Session:
    person = Person(subject="c", name="Ada", is_operator=caller is None)
    return Session(person=person, id="1", proof="p", began=0, expires=9, caller=caller)


def a_visit(service: Service | None = None, **changes: Any) -> Visit:
    usual: dict[str, Any] = {
        "console": None,
        "session": a_session(),
        "blanks": [],
        "query": {},
        "form": {},
        "client": service or Service(),
        "address": "192.0.2.7",
        "request_id": "r-1",
    }
    return Visit(**usual | changes)


@pytest.mark.parametrize(
    ("segments", "query", "path"),
    [
        ((), {}, "/console"),
        (("endpoints",), {}, "/console/endpoints"),
        (("resources", "Patient", "a/b?c#d"), {}, "/console/resources/Patient/a%2Fb%3Fc%23d"),
        (("a",), {"x": "1 &", "y": "ü"}, "/console/a?x=1+%26&y=%C3%BC"),
        (("a",), {"x": "", "y": "2"}, "/console/a?y=2"),
        (("a",), {"x": ""}, "/console/a"),
    ],
)
def test_an_address_has_its_segments_and_its_query_encoded(
    segments: Sequence[str], query: dict[str, str], path: str
) -> None:
    assert address(*segments, **query) == path


def test_a_field_of_a_form_has_no_blanks_around_it() -> None:
    visit = a_visit(form={"name": ["  Ada ", "second"], "none": []})

    assert [visit.field(name) for name in ("name", "none", "other")] == ["Ada", "", ""]


def test_a_page_for_clients_is_refused_to_others() -> None:
    assert a_visit().caller is CALLER
    for session in (None, a_session(caller=None)):
        with pytest.raises(PageRefused, match="for the people of a client") as refused:
            _ = a_visit(session=session).caller
        assert refused.value.status == 403


async def test_a_page_asks_as_the_client_of_the_session() -> None:
    service = Service()
    visit = a_visit(service)

    assert await visit.get("/x", [("a", "1")]) == {"a": 1}
    assert await visit.send("PUT", "/y", {"b": 2}) == {"a": 1}

    assert service.asked == [
        (CALLER, "GET", "/x", [("a", "1")]),
        (CALLER, "PUT", "/y", {"b": 2}),
    ]


@pytest.mark.parametrize("status", [400, 404, 503])
async def test_what_the_service_refuses_is_refused(status: int) -> None:
    visit = a_visit(Service(status))

    for asked in (visit.get("/x"), visit.send("PUT", "/x")):
        with pytest.raises(ServiceRefused) as refused:
            await asked
        assert refused.value.answer.status == status


async def test_an_operator_asks_nothing_of_the_service() -> None:
    service = Service()

    with pytest.raises(PageRefused):
        await a_visit(service, session=a_session(caller=None)).get("/x")

    assert service.asked == []


@pytest.mark.parametrize(("received", "in_thread"), [(16 * 1024, False), (16 * 1024 + 1, True)])
async def test_a_page_of_much_is_made_in_a_thread_of_the_tenant(
    received: int, *, in_thread: bool
) -> None:
    tenants: list[str] = []

    async def run(tenant: str, work: Any) -> Any:
        tenants.append(tenant)
        return work()

    service = Service()
    service.received = received
    console = cast("Any", SimpleNamespace(services=SimpleNamespace(
        threads=SimpleNamespace(run=run))))  # fmt: skip

    assert await a_visit(service, console=console).compute(lambda: 7) == 7
    assert tenants == ([CALLER.tenant.id] if in_thread else [])


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", ""),
        ("2026-11-21", "2026-11-21T00:00:00Z"),
        ("2026-11-21T10:00", "2026-11-21T10:00:00Z"),
        ("2026-11-21T10:00:05", "2026-11-21T10:00:05Z"),
        ("2026-11-21T10:00:05Z", "2026-11-21T10:00:05Z"),
        ("2026-11-21T10:00+02:00", "2026-11-21T10:00+02:00"),
        ("2026-11-21T10:00:05-05:00", "2026-11-21T10:00:05-05:00"),
    ],
)
def test_a_time_without_a_zone_is_in_utc(text: str, moment: str) -> None:
    assert moment_in_utc(text) == moment
