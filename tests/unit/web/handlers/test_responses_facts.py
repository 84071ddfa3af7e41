"""What answers and refusals have beside their bodies, and where their content is computed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import orjson
import pytest

from fhirpub.errors import InvalidContent, Issue, NotPermitted
from fhirpub.problems import ContentProblem
from fhirpub.testing.service import Integrator
from fhirpub.web.handlers.placement import DENSE, LARGE, LARGE_STORED
from tests.bodies import register_body
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import (
    REPORTS,
    Asked,
    Places,
    asked,
    id_of,
    on_request,
    path_of,
    running,
)


def test_a_refusal_has_the_headers_to_which_it_obliges(lab: Integrator) -> None:
    without_token = lab.service.request("GET", REPORTS)

    assert without_token.headers["www-authenticate"] == 'Bearer realm="fhirpub"'


def test_a_refusal_names_its_places_as_fhirpath_does(lab: Integrator) -> None:
    place = "DiagnosticReport.effectiveDateTime"
    problem = InvalidContent([Issue.error(ContentProblem.VALUE_INVALID, "is wrong", place)])

    async def use(one: Asked) -> list[str]:
        one.handler.fail(problem)
        (issue,) = orjson.loads(one.exchange.body or b"")["issue"]
        expression: list[str] = issue["expression"]
        return expression

    assert on_request(lab, use) == ["DiagnosticReport.effective"]


def test_the_line_of_a_registration_names_the_resource_that_was_made(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        headers = {"X-Request-Id": name}
        answer = lab.request("POST", f"{REPORTS}/$register", register_body(uuid4().hex), headers)
        line = caught.of(name)

    assert answer.status == 201
    assert line["resource"] == f"DiagnosticReport/{id_of(answer)}"


@pytest.mark.parametrize(("least", "vary"), [(0, "Accept"), (1, "Accept, Accept-Encoding")])
def test_what_is_never_compressed_does_not_depend_on_what_codings_are_accepted(
    lab: Integrator, least: int, vary: str
) -> None:
    async def found() -> tuple[bool, str]:
        services = running(lab).services
        server = replace(services.config.server, compress_from_bytes=least)
        services = replace(services, config=replace(services.config, server=server))
        async with asked(
            lab, "GET", REPORTS, {"Accept-Encoding": "gzip"}, services=services
        ) as one:
            handler: Any = one.handler
            handler.set_private_caching()
            return handler.wants_gzip(1_000_000), handler.headers["Vary"]

    assert running(lab).call(found()) == (bool(least), vary)


DENSE_ENOUGH = b"{" + b"1," * DENSE
MUCH_DENSER = b"{" + b"1," * 10 * DENSE


@pytest.mark.parametrize(
    ("stored", "accept", "place"),
    [
        (DENSE_ENOUGH, "application/fhir+json", []),
        (DENSE_ENOUGH, "application/fhir+xml", ["process"]),
        (b"1," * DENSE, "application/fhir+xml", []),
        (MUCH_DENSER, "application/fhir+json", ["process"]),
        (b" " * LARGE_STORED, "application/fhir+json", ["thread"]),
        (b" " * (LARGE_STORED + 1), "application/fhir+json", ["process"]),
    ],
    ids=["json", "xml", "xml at the limit", "dense json", "long", "longer"],
)
def test_an_answer_is_computed_where_its_values_delay_no_other_request(
    lab: Integrator, stored: bytes, accept: str, place: list[str]
) -> None:
    async def found() -> list[str]:
        services = running(lab).services
        places: Any = Places(services.context)
        services = replace(services, threads=places, processes=places)
        async with asked(lab, "GET", REPORTS, {"Accept": accept}, services=services) as one:
            handler: Any = one.handler
            await handler.compute_answer(lambda _context, _body: "", [stored])
            return [one for one, _owner in places.seen]

    assert running(lab).call(found()) == place


def test_the_line_of_a_read_names_its_resource(lab: Integrator) -> None:
    path = path_of(lab.register(register_body(uuid4().hex)))
    with caught_lines() as caught:
        name = uuid4().hex
        lab.get(path, X_Request_Id=name)
        line = caught.of(name)

    assert line["resource"] == path[path.index("DiagnosticReport/") :]


def test_an_answer_is_in_lines_only_for_those_who_ask_for_that(lab: Integrator) -> None:
    plain, lines, other = (
        lab.get(f"/fhir/r4/metadata{query}").body.count(b"\n")
        for query in ("", "?_pretty=true", "?_pretty=false")
    )

    assert lines > 100 > plain == other


def test_a_refusal_that_is_in_json_for_lack_of_another_form_says_so(lab: Integrator) -> None:
    async def use(one: Asked) -> tuple[str, str]:
        one.handler.response_type = "application/fhir+xml"
        one.handler.fail(NotPermitted())
        kind = orjson.loads(one.exchange.body or b"")["resourceType"]
        return one.exchange.headers["Content-Type"], kind

    found = on_request(lab, use, headers={"Accept": "image/png"})
    assert found == ("application/fhir+json", "OperationOutcome")


@pytest.mark.parametrize("form", ["json", "xml"])
def test_a_version_is_in_lines_for_who_asks_for_that(lab: Integrator, form: str) -> None:
    path = path_of(lab.register(register_body(uuid4().hex)))

    plain, pretty = (
        lab.get(f"{path}?_format={form}{more}").body for more in ("", "&_pretty=true")
    )

    assert pretty.count(b"\n") > 10 > plain.count(b"\n")


def test_what_was_not_modified_is_kept_as_the_answer_is(lab: Integrator) -> None:
    path = path_of(lab.register(register_body(uuid4().hex)))
    first = lab.get(path)

    known = lab.get(path, If_None_Match=first.headers["etag"])

    assert (known.status, known.body) == (304, b"")
    for name in ("cache-control", "vary", "etag", "last-modified"):
        assert known.headers[name] == first.headers[name]


@pytest.mark.parametrize(("size", "places"), [(LARGE, []), (LARGE + 1, ["thread"])])
def test_a_large_answer_is_compressed_in_a_thread_of_its_tenant(
    lab: Integrator, size: int, places: list[str]
) -> None:
    async def found() -> Any:
        services = running(lab).services
        noted: Any = Places(services.context)
        services = replace(services, threads=noted)
        given = {"Accept-Encoding": "gzip"}
        async with asked(lab, "GET", REPORTS, given, services=services) as one:
            one.handler.respond_serialized(b"x" * size)
            await one.exchange.wait_ended()
            return noted.seen, one.exchange.headers["Content-Encoding"]

    seen, coding = running(lab).call(found())
    assert seen == [(place, lab.tenant.id) for place in places]
    assert coding == "gzip"


def test_a_location_and_a_tag_are_those_of_the_version(lab: Integrator) -> None:
    version: Any = SimpleNamespace(type="Patient", id="p", version=3, tag="t-3", updated=0)

    async def use(one: Asked) -> tuple[str, str]:
        one.handler.set_location(version)
        one.handler.set_version_headers(version)
        return one.handler.headers["Location"], one.handler.headers["ETag"]

    location, tag = on_request(lab, use)
    assert location == f"{lab.service.base_url}/fhir/r4/Patient/p/_history/3"
    assert tag == 'W/"t-3"'


def test_the_line_of_a_refusal_names_its_codes(lab: Integrator) -> None:
    with caught_lines() as caught:
        name = uuid4().hex
        lab.get(f"{REPORTS}/unknown", X_Request_Id=name)
        line = caught.of(name)

    assert line["codes"] == ["resource-unknown"]


@pytest.mark.parametrize("status", [200, 201])
def test_an_answer_without_documents_has_its_status_too(lab: Integrator, status: int) -> None:
    async def use(one: Asked) -> int:
        one.handler.respond_with_documents(b"{}", {}, status=status)
        return one.exchange.status

    assert on_request(lab, use) == status


@pytest.mark.parametrize("tags", [["1", "2"], ["2", "1"], ["2", "3"]])
def test_a_tag_may_be_in_any_of_several_headers(lab: Integrator, tags: list[str]) -> None:
    async def use(one: Asked) -> bool:
        for tag in tags:
            one.request.headers.add("If-None-Match", f'W/"{tag}"')
        return one.handler.client_has("1")

    assert on_request(lab, use) is ("1" in tags)
