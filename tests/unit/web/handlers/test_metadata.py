"""The description of the service: its tags, who may read it, and its formats."""

from __future__ import annotations

import gzip

import pytest

from fhirpub.fhir.strict_json import loads
from fhirpub.testing.service import Integrator, RunningService
from tests.unit.web.handlers.asking import REPORTS, asked

METADATA, OPENAPI = "/fhir/r4/metadata", "/openapi.json"


def test_the_statement_is_read_with_its_tag(lab: Integrator) -> None:
    answer = lab.get(METADATA)

    assert (answer.status, answer.json["resourceType"]) == (200, "CapabilityStatement")
    assert answer.headers["etag"].startswith('W/"')


@pytest.mark.parametrize("path", [METADATA, OPENAPI])
def test_what_the_client_has_is_not_sent(lab: Integrator, path: str) -> None:
    tag = lab.get(path).headers["etag"]

    known, other = lab.get(path, If_None_Match=tag), lab.get(path, If_None_Match='W/"x"')

    assert (known.status, known.body, known.headers["etag"]) == (304, b"", tag)
    assert other.status == 200


def test_the_statement_is_sent_as_xml(lab: Integrator) -> None:
    assert b"<CapabilityStatement" in lab.get(METADATA, Accept="application/fhir+xml").body


@pytest.mark.parametrize("accept", ["*/*", "application/fhir+xml", "image/png"])
def test_the_document_is_json_without_a_token(service: RunningService, accept: str) -> None:
    answer = service.request("GET", OPENAPI, headers={"Accept": accept})

    assert (answer.status, answer.json["openapi"]) == (200, "3.1.0")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in answer.headers


def test_the_document_is_in_gzip_for_a_client_that_accepts_it(service: RunningService) -> None:
    plain, coded = (
        service.request("GET", OPENAPI, headers=headers)
        for headers in ({}, {"Accept-Encoding": "gzip"})
    )

    assert coded.headers["content-encoding"] == "gzip"
    assert loads(gzip.decompress(coded.body)) == plain.json


@pytest.mark.parametrize(("path", "is_counted"), [(METADATA, False), (REPORTS, True)])
def test_reading_the_statement_counts_in_no_quota(
    counted: RunningService, path: str, *, is_counted: bool
) -> None:
    lab = counted.integrator()

    async def has_ticket() -> bool:
        async with asked(lab, "GET", path) as one:
            return one.handler.ticket is not None

    assert counted.call(has_ticket()) is is_counted
