"""The headers, the format and the compression of answers and refusals."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.config.settings import Config, FhirConfig, ServerConfig
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import register_body
from tests.unit.web.handlers.asking import path_of

BASE = "/fhir/r4"
LEAST = 1_000
NOW = 1_795_000_000_300
AS_DATE, AS_INSTANT = "Wed, 18 Nov 2026 11:06:40 GMT", "2026-11-18T11:06:40.300Z"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Integrator]:
    config = Config(server=ServerConfig(compress_from_bytes=LEAST))
    folder = tmp_path_factory.mktemp("responses")
    with RunningService(folder, config=config, clock=HandClock(NOW)) as service:
        yield service.integrator()


@pytest.fixture(scope="module")
def path(lab: Integrator) -> str:
    return path_of(lab.register(register_body(uuid4().hex)))


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("application/fhir+json", "application/fhir+json"),
        ("application/fhir+xml", "application/fhir+xml"),
        ("*/*", "application/fhir+json"),
    ],
)
def test_an_answer_has_the_format_that_is_accepted(
    lab: Integrator, path: str, accept: str, wanted: str
) -> None:
    answer = lab.get(path, Accept=accept)

    assert (answer.status, answer.headers["content-type"]) == (200, wanted)


def test_a_format_in_the_query_comes_before_what_is_accepted(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}?_format=xml", Accept="application/fhir+json")

    assert answer.status == 200
    assert b"<DiagnosticReport" in answer.body


def test_a_report_without_documents_is_sent_as_it_is_stored(lab: Integrator) -> None:
    body = register_body(uuid4().hex)
    body.pop("presentedForm", None)
    made = lab.register(body)

    answer = lab.get(path_of(made))

    assert (answer.status, answer.json["resourceType"]) == (200, "DiagnosticReport")


@pytest.mark.parametrize("form", ["json", "xml"])
def test_a_small_resource_is_sent_in_the_format_that_was_asked_for(
    lab: Integrator, form: str
) -> None:
    answer = lab.get(f"{BASE}/metadata?_format={form}")

    assert answer.status == 200
    assert answer.headers["content-type"] == f"application/fhir+{form}"
    assert b"CapabilityStatement" in answer.body


def test_a_format_that_cannot_be_had_is_refused_in_json(lab: Integrator, path: str) -> None:
    answer = lab.get(path, Accept="image/png")

    assert (answer.status, answer.json["resourceType"]) == (406, "OperationOutcome")
    assert answer.headers["content-type"] == "application/fhir+json"


def test_a_refusal_has_the_format_that_is_accepted_and_is_not_kept(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}/DiagnosticReport/unknown", Accept="application/fhir+xml")

    assert answer.status == 404
    assert answer.body.startswith(b"<?xml")
    assert answer.headers["cache-control"] == "no-store"


def test_a_refusal_has_none_of_the_headers_of_an_answer(lab: Integrator, path: str) -> None:
    answer = lab.get(path, If_Match='W/"7"')

    assert answer.status == 412
    assert "last-modified" not in answer.headers


def test_a_refusal_names_the_request(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}/DiagnosticReport/unknown", X_Request_Id="abc")

    assert answer.json["meta"]["source"].endswith("#abc")
    assert answer.headers["x-request-id"] == "abc"


def test_an_answer_is_kept_by_its_client_alone_for_what_it_accepts(
    lab: Integrator, path: str
) -> None:
    headers = lab.get(path).headers

    assert headers["cache-control"] == "private, no-cache"
    assert headers["vary"] == "Accept, Accept-Encoding"
    assert headers["x-content-type-options"] == "nosniff"


def registered(lab: Integrator, conclusion: str) -> str:
    return path_of(lab.register(register_body(uuid4().hex, conclusion=conclusion)))


def small_and_large(lab: Integrator, **headers: str) -> tuple[Answer, Answer]:
    """Return an answer one byte below the least that is compressed, and one of exactly that."""
    found = []
    for size in (LEAST - 1, LEAST):
        path = f"{registered(lab, 'x')}?_elements=conclusion"
        missing = size - len(lab.get(path).body)
        path = f"{registered(lab, 'x' * (1 + missing))}?_elements=conclusion"
        assert len(lab.get(path).body) == size
        found.append(lab.get(path, **headers))
    return found[0], found[1]


def test_what_is_large_enough_is_compressed_for_those_who_accept_it(lab: Integrator) -> None:
    small, large = small_and_large(lab, Accept_Encoding="gzip")

    assert "content-encoding" not in small.headers
    assert large.headers["content-encoding"] == "gzip"
    assert len(gzip.decompress(large.body)) == LEAST
    assert int(large.headers["content-length"]) == len(large.body)


@pytest.mark.parametrize("accepted", ["identity", "gzip;q=0", "br"])
def test_what_is_large_is_not_compressed_for_others(lab: Integrator, accepted: str) -> None:
    _small, large = small_and_large(lab, Accept_Encoding=accepted)

    assert "content-encoding" not in large.headers


def test_a_head_has_the_length_and_no_body(lab: Integrator, path: str) -> None:
    answer, whole = lab.request("HEAD", path), lab.get(path)

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(whole.body))


def test_a_bundle_links_to_the_format_that_was_asked_for(lab: Integrator) -> None:
    answer = lab.get(f"{BASE}/DiagnosticReport?_format=json&_pretty=true&_count=1")

    (link,) = [one["url"] for one in answer.json["link"] if one["relation"] == "self"]
    assert "_format=json" in link
    assert "_pretty=true" in link


@pytest.mark.parametrize(
    ("style", "registered", "read"),
    [
        ("specification", AS_INSTANT, AS_INSTANT),
        ("http", AS_DATE, AS_DATE),
        ("by-route", AS_INSTANT, AS_DATE),
    ],
)
def test_the_time_of_a_version_has_the_style_of_the_settings(
    tmp_path_factory: pytest.TempPathFactory, style: str, registered: str, read: str
) -> None:
    config = Config(fhir=FhirConfig(last_modified_style=style))  # type: ignore[arg-type]
    with RunningService(tmp_path_factory.mktemp("s"), config=config, clock=HandClock(NOW)) as one:
        lab = one.integrator()
        made = lab.register(register_body("R-1"))
        found = lab.get(path_of(made))

    assert (made.headers["last-modified"], found.headers["last-modified"]) == (registered, read)
