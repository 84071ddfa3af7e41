"""Dense and very large bodies get the same answers from another process as from a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body

WRONG: dict[str, Any] = {
    "wrong in many places": {"extension": [{}] * 3_000},
    "too many values": {"extension": [{}] * 120_000},
    "a rule between fields is broken": {
        "subject": {"reference": "Patient/unknown"},
        "extension": [{"url": "urn:x", "valueString": "x"}] * 1_000,
    },
    "wrong beside 3 MB": {"unknown": "x" * 3_000_000},
}
DENSE = {"category": [{"coding": [{"system": "urn:x", "code": f"c{n}"}]} for n in range(900)]}
Serve = Callable[[int], Integrator]
XML = {"Content-Type": "application/fhir+xml"}


@pytest.fixture
def serve(
    tmp_path: Path, store_url: Callable[[str], str]
) -> Iterator[Callable[[int], Integrator]]:
    """Return a function that starts a service with so many compute processes."""
    with ExitStack() as running:

        def start(processes: int) -> Integrator:
            folder = tmp_path / uuid4().hex
            folder.mkdir()
            config = Config()
            config = replace(config, limits=replace(config.limits, compute_processes=processes))
            url = store_url(f"compute_{uuid4().hex}")
            service = RunningService(folder, config=config, store_url=url)
            return running.enter_context(service).integrator()

        yield start


@pytest.fixture
def lab(serve: Serve) -> Integrator:
    return serve(2)


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_a_refusal_is_that_of_a_thread(serve: Serve, changes: dict[str, Any]) -> None:
    body = dumps(register_body("A", **changes))

    labs = [serve(processes) for processes in (0, 2)]
    answers = [lab.register(body) for lab in labs]

    assert answers[0].status == answers[1].status
    assert answers[0].status in (400, 422)
    issues = [
        dumps(answer.issues).replace(lab.service.base_url.encode(), b"")
        for answer, lab in zip(answers, labs, strict=True)
    ]
    assert issues[0] == issues[1]


def test_a_dense_registration_is_stored_once(lab: Integrator) -> None:
    body = dumps(register_body("A", **DENSE))

    first, second = lab.register(body), lab.register(body)

    assert [first.status, second.status] == [201, 201]
    assert first.body == second.body
    assert len(lab.get(_path(first.headers["location"])).json["category"]) == 900


def test_a_dense_registration_in_xml_is_read_back_in_xml(lab: Integrator) -> None:
    body = write_xml(register_body("A", **DENSE))

    registered = lab.register(body, **XML)
    read = lab.get(f"{_path(registered.headers['location'])}?_format=xml")

    assert [registered.status, read.status] == [201, 200]
    assert read.body.count(b"<category>") == 900


def test_a_dense_update_is_stored(lab: Integrator) -> None:
    registered = lab.register(dumps(register_body("A", **DENSE)))
    path = _path(registered.headers["location"]).partition("/_history")[0]

    assert (
        lab.patch(path, {"resourceType": "DiagnosticReport", "conclusion": "normal"}).status == 204
    )
    assert lab.get(path).json["conclusion"] == "normal"


def test_pages_of_dense_resources_are_listed(lab: Integrator) -> None:
    for name in ("A", "B"):
        assert lab.register(dumps(register_body(name, **DENSE))).status == 201

    found = lab.get("/fhir/r4/DiagnosticReport?_pretty=true&_format=xml")
    history = lab.get("/fhir/r4/DiagnosticReport/_history?_format=xml")
    subset = lab.get("/fhir/r4/DiagnosticReport?_elements=category")

    assert [found.status, history.status, subset.status] == [200, 200, 200]
    assert found.body.count(b"<category>") == history.body.count(b"<category>") == 1_800
    assert [len(entry["resource"]["category"]) for entry in subset.json["entry"]] == [900, 900]


def test_a_dense_body_uses_a_process_and_an_ordinary_one_does_not(lab: Integrator) -> None:
    service = lab.service
    assert isinstance(service, RunningService)
    pool = service.services.processes
    assert pool is not None

    assert lab.register(dumps(register_body("A"))).status == 201
    before = pool.running
    assert lab.register(dumps(register_body("B", **DENSE))).status == 201

    assert (before, pool.running) == (0, 1)


def _path(location: str) -> str:
    return location[location.index("/fhir/") :]
