"""Documents: who may read them, as what, which part, and which version they belong to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import records_of_tenant
from tests.bodies import PDF, document, register_body
from tests.erasing import Operator
from tests.unit.web.handlers.asking import REPORTS, Asked, on_request

SHA256 = hashlib.sha256(PDF).hexdigest()
HASH = f"/fhir/r4/Binary/{SHA256}"
SIZE = len(PDF)
FHIR = "application/fhir+json"


def register(lab: Integrator, *forms: dict[str, Any]) -> list[str]:
    """Register a report with documents; return their paths."""
    value = uuid4().hex
    answer = lab.register(register_body(value, presentedForm=[*forms] or [document()]))
    assert answer.status == 201, answer.body
    found = lab.get(f"{REPORTS}?identifier={value}").json["entry"][0]["resource"]
    urls: list[str] = [form["url"] for form in found["presentedForm"]]
    return [url.removeprefix(lab.service.base_url) for url in urls]


@pytest.fixture(params=["place", "hash"])
def path(lab: Integrator, request: pytest.FixtureRequest) -> str:
    """The path of a document: in its report, or by its bytes."""
    (place,) = register(lab)
    return HASH if request.param == "hash" else place


def test_a_document_is_sent_as_it_is(lab: Integrator, path: str) -> None:
    answer = lab.get(path)

    assert (answer.status, answer.body) == (200, PDF)
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["etag"] == f'"{SHA256}"'


def test_a_document_has_the_headers_that_protect_who_opens_it(lab: Integrator, path: str) -> None:
    headers = lab.get(path).headers

    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert headers["cache-control"] == "private, no-cache"
    assert headers["vary"].startswith("Accept")
    assert headers["accept-ranges"] == "bytes"


def test_a_document_has_its_title_only_in_its_report(lab: Integrator) -> None:
    (place,) = register(lab, document(title="Blood count"))

    names = [lab.get(path).headers["content-disposition"] for path in (place, HASH)]

    assert names == ['inline; filename="Blood count.pdf"', 'inline; filename="document.pdf"']


def test_a_document_has_the_type_that_its_report_states(lab: Integrator) -> None:
    paths = register(lab, document(contentType="text/plain"), document(contentType="text/css"))

    kinds = [lab.get(path).headers["content-type"] for path in paths]

    assert kinds == ["text/plain", "text/css"]


def test_a_document_is_fhir_for_a_client_that_accepts_it(lab: Integrator, path: str) -> None:
    answer = lab.get(path, Accept=FHIR)

    assert answer.headers["content-type"] == FHIR
    assert answer.headers["etag"] == f'W/"{SHA256}"'
    assert base64.b64decode(answer.json["data"]) == PDF
    assert answer.json | {"data": ""} == {
        "resourceType": "Binary",
        "id": path.rpartition("/")[2],
        "contentType": "application/pdf",
        "data": "",
    }


def test_a_document_is_fhir_in_xml_for_a_client_that_names_it(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}?_format=application/fhir%2Bxml")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/fhir+xml")
    assert b'<Binary xmlns="http://hl7.org/fhir">' in answer.body
    assert base64.b64encode(PDF) in answer.body


def test_a_format_that_is_none_of_fhir_leaves_the_document_as_it_is(
    lab: Integrator, path: str
) -> None:
    answer = lab.get(f"{path}?_format=text/turtle")

    assert (answer.status, answer.body) == (200, PDF)


@pytest.mark.parametrize(
    ("tag", "status"), [(f'"{SHA256}"', 304), (f'W/"{SHA256}"', 304), ('"x"', 200), ("*", 304)]
)
def test_a_document_that_the_client_has_is_not_sent(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, If_None_Match=tag).status == status


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        (f'"{SHA256}"', 200),
        (f'"x", "{SHA256}"', 200),
        ("*", 200),
        (f'W/"{SHA256}"', 412),
        ('"x"', 412),
    ],
)
def test_other_bytes_than_the_wanted_ones_are_refused(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    assert lab.get(path, If_Match=tag).status == status


def test_a_refusal_of_other_bytes_names_the_tag(lab: Integrator, path: str) -> None:
    said = lab.get(path, If_Match='"x"').issues[0]["diagnostics"]

    assert said == f'target version of other bytes, current version "{SHA256}"'


def test_as_fhir_the_weak_tag_is_wanted(lab: Integrator, path: str) -> None:
    found = [
        lab.get(path, Accept=FHIR, If_Match=tag).status for tag in (f'W/"{SHA256}"', f'"{SHA256}"')
    ]

    assert found == [200, 412]


# Parts.


def test_a_part_of_a_large_document_is_sent(lab: Integrator) -> None:
    data = bytes(range(256)) * 1_000
    (path,) = register(lab, document(data))

    answer = lab.get(path, Range="bytes=100000-199999")

    assert (answer.status, answer.body) == (206, data[100_000:200_000])


@pytest.mark.parametrize(
    ("asked", "part", "named"),
    [
        ("bytes=0-3", PDF[:4], f"bytes 0-3/{SIZE}"),
        ("bytes=5-", PDF[5:], f"bytes 5-{SIZE - 1}/{SIZE}"),
        ("bytes=-3", PDF[-3:], f"bytes {SIZE - 3}-{SIZE - 1}/{SIZE}"),
        (f"bytes=0-{SIZE + 9}", PDF, f"bytes 0-{SIZE - 1}/{SIZE}"),
    ],
    ids=["first", "from", "last", "beyond"],
)
def test_a_part_is_named_with_its_place_in_the_whole(
    lab: Integrator, path: str, asked: str, part: bytes, named: str
) -> None:
    answer = lab.get(path, Range=asked)

    assert (answer.status, answer.body) == (206, part)
    assert answer.headers["content-range"] == named
    assert answer.headers["content-length"] == str(len(part))


def test_a_part_behind_the_end_is_refused_with_the_size(lab: Integrator, path: str) -> None:
    answer = lab.get(path, Range=f"bytes={SIZE}-")

    assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize(
    ("tag", "status"), [(f'"{SHA256}"', 206), ('"other"', 200), (f'W/"{SHA256}"', 200)]
)
def test_a_part_of_other_bytes_than_the_client_has_is_the_whole(
    lab: Integrator, path: str, tag: str, status: int
) -> None:
    answer = lab.get(path, Range="bytes=0-3", If_Range=tag)

    assert (answer.status, len(answer.body)) == (status, 4 if status == 206 else SIZE)


def test_a_head_names_the_whole_whatever_part_it_asks_for(lab: Integrator, path: str) -> None:
    answer = lab.request("HEAD", path, headers={"Range": "bytes=0-3"})

    assert (answer.status, answer.headers["content-length"]) == (200, str(SIZE))
    assert "content-range" not in answer.headers


def test_the_whole_has_no_content_range(lab: Integrator, path: str) -> None:
    assert "content-range" not in lab.get(path).headers


def test_as_fhir_a_document_has_no_parts(lab: Integrator, path: str) -> None:
    assert lab.get(path, Accept=FHIR, Range="bytes=0-3").status == 200


# What is there.


@pytest.mark.parametrize("digest", ["0" * 64, SHA256.upper(), SHA256[1:], SHA256 + "0"])
def test_a_hash_that_is_none_of_ours_leads_nowhere(lab: Integrator, digest: str) -> None:
    register(lab)

    assert lab.get(f"/fhir/r4/Binary/{digest}").status == 404


def test_a_document_of_another_tenant_is_not_found(
    service: RunningService, lab: Integrator, path: str
) -> None:
    other = service.integrator("Other")

    assert [one.get(path).status for one in (lab, other)] == [200, 404]


def test_each_version_has_its_own_document(lab: Integrator) -> None:
    (old,) = register(lab)
    report = old.rpartition("/")[2].partition(".")[0]
    body = {"resourceType": "DiagnosticReport", "presentedForm": [document(b"other")]}
    assert lab.patch(f"{REPORTS}/{report}", body).status == 204

    found = [lab.get(path).body for path in (old, old.replace(".1.1", ".2.1"))]

    assert found == [PDF, b"other"]


# Scopes.


@pytest.mark.parametrize(
    ("scope", "by_place", "by_hash"),
    [
        ("system/Binary.r", 200, 200),
        ("system/DiagnosticReport.r", 200, 200),
        ("system/DiagnosticReport.s", 403, 403),
        ("system/Observation.r", 403, 403),
        ("system/Patient.r", 403, 403),
    ],
)
def test_a_document_is_read_with_the_right_to_it_or_to_its_report(
    strict_service: RunningService, scope: str, by_place: int, by_hash: int
) -> None:
    owner = strict_service.integrator(scopes=("system/*.cruds",))
    (place,) = register(owner)

    lab = strict_service.another_client(owner.tenant, scopes=(scope,))

    assert [lab.get(path).status for path in (place, HASH)] == [by_place, by_hash]


# Rights, and what was erased.


@pytest.mark.parametrize(
    ("scope", "may"),
    [
        ("system/Encounter.r", False),
        ("system/DiagnosticReport.r", True),
        ("system/Binary.r", True),
    ],
)
def test_the_right_to_a_type_without_documents_is_none_to_documents(
    lab: Integrator, scope: str, *, may: bool
) -> None:
    types: Any = {
        "Encounter": SimpleNamespace(attachments=()),
        "DiagnosticReport": SimpleNamespace(attachments=("presentedForm",)),
    }

    async def use(one: Asked) -> bool:
        handler = one.handler
        handler.caller = replace(handler.caller, scopes=(scope,), scopes_count=True)
        handler.services = replace(handler.services, types=types)
        return handler.may("r")

    assert on_request(lab, use, path=HASH) is may


def test_a_document_of_a_report_that_was_erased_is_gone(
    service: RunningService, lab: Integrator
) -> None:
    (place,) = register(lab)
    report = place.rpartition("/")[2].partition(".")[0]
    Operator(service, lab).erase(f"DiagnosticReport/{report}")

    assert lab.get(place).status == 410


def test_each_of_several_documents_is_itself(lab: Integrator) -> None:
    contents = [PDF, b"%PDF-second", b"%PDF-third"]

    paths = register(lab, *map(document, contents))

    assert [lab.get(path).body for path in paths] == contents


def test_a_document_is_recorded_with_the_version_that_has_it(lab: Integrator) -> None:
    (path,) = register(lab)
    lab.get(path)

    record = records_of_tenant(lab)[-1]
    name = path.rpartition("/")[2]
    assert record["what"] == [
        f"Binary/{name}",
        f"DiagnosticReport/{name.partition('.')[0]}/_history/1",
    ]
    assert len(record["patients"]) == 1


@pytest.fixture(scope="module")
def of_two_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service in which scopes count, with two types that have documents."""
    config = Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "documentreference"]),
        auth=AuthConfig(enforce_scopes=True),
    )
    with RunningService(tmp_path_factory.mktemp("two"), config=config) as service:
        yield service


@pytest.mark.parametrize(
    ("scope", "status"),
    [("DiagnosticReport.r", 200), ("Binary.r", 200), ("DocumentReference.r", 403)],
)
def test_the_right_to_another_type_with_documents_is_none_to_this_document(
    of_two_types: RunningService, scope: str, status: int
) -> None:
    owner = of_two_types.integrator(scopes=("system/*.cruds",))
    (path,) = register(owner)
    lab = of_two_types.another_client(owner.tenant, scopes=(f"system/{scope}",))

    assert lab.get(path).status == status
