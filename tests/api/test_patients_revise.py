"""Corrections of reports of persons: a revision never changes whose report it is (ADR 26)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.api.test_patients import BASE, CONFIG, NATIONAL, identified, ids_in, of, subject_of
from tests.panels import result

PERSON = identified((NATIONAL, "1"))


def results(*values: float) -> list[dict[str, Any]]:
    """Return results, each with a local id of its own."""
    return [result(f"r{number}", value) for number, value in enumerate(values)]


def revise(lab: Integrator, body: dict[str, Any]) -> Answer:
    """Send the registration of R-1 again as a revision of it."""
    (report,) = ids_in(lab.get(f"{BASE}/DiagnosticReport?identifier=R-1"))
    address = f"{BASE}/DiagnosticReport/{report}/$revise"
    return lab.request("POST", address, body, {"If-Match": "*"})


def found(lab: Integrator, query: str) -> int:
    return len(ids_in(lab.get(f"{BASE}/{query}")))


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("revised")
    with RunningService(folder, config=CONFIG, store_url=store_url("revised")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


def test_a_revision_states_nothing_about_the_patient(lab: Integrator) -> None:
    subject = subject_of(lab.register(of("R-1", PERSON, *results(13.2))))
    later = lab.register(of("R-2", identified((NATIONAL, "1"), gender="male")))
    answer = revise(lab, of("R-1", PERSON, *results(13.4, 6.1)))

    assert answer.status == 200, answer.body
    assert subject_of(later) == subject
    assert lab.get(f"{BASE}/{subject}").json["gender"] == "male"
    assert len(lab.get(f"{BASE}/{subject}/_history").json["entry"]) == 2
    assert found(lab, f"DiagnosticReport?patient={subject}") == 2
    assert found(lab, f"Observation?patient={subject}") == 2


def test_another_patient_is_refused(lab: Integrator) -> None:
    lab.register(of("R-1", PERSON, *results(13.2)))
    other = revise(lab, of("R-1", identified((NATIONAL, "2")), *results(13.2)))

    assert other.status == 422
    assert "patient" in {expression.split(".")[0] for expression in other.issue_expressions}


def test_a_report_of_a_held_patient_is_revised_without_it(lab: Integrator) -> None:
    subject = subject_of(lab.register(of("R-0", PERSON)))
    body = of("R-1", PERSON, *results(13.2))
    del body["parameter"][0]
    for parameter in body["parameter"]:
        if "subject" in parameter["resource"]:
            parameter["resource"]["subject"] = {"reference": subject}
    lab.register(body)
    body["parameter"][-1]["resource"]["valueQuantity"]["value"] = 13.9
    lab.register(of("R-2", identified((NATIONAL, "1"), gender="male")))
    answer = revise(lab, body)

    assert answer.status == 200, answer.body
    (observation,) = ids_in(lab.get(f"{BASE}/Observation?patient={subject}"))
    revised = lab.get(f"{BASE}/Observation/{observation}").json
    assert revised["valueQuantity"]["value"] == 13.9
    assert len(lab.get(f"{BASE}/{subject}/_history").json["entry"]) == 2


class TestFromBeforeSystemsWereDeclared:
    """The report keeps the Patient that it was registered with, and is found by the person."""

    @pytest.fixture
    def old(
        self, tmp_path: Path, store_url: Callable[[str], str]
    ) -> Iterator[tuple[Integrator, str]]:
        """A service after its systems were declared, and the Patient of a report before."""
        url = store_url("before")
        with RunningService(tmp_path, store_url=url) as service:
            lab = service.integrator()
            subject = subject_of(lab.register(of("R-1", PERSON, *results(13.2))))
        with RunningService(tmp_path, config=CONFIG, store_url=url) as service:
            yield service.another_client(lab.tenant), subject

    def test_sending_the_same_again_changes_nothing(self, old: tuple[Integrator, str]) -> None:
        lab, _subject = old
        answer = revise(lab, of("R-1", PERSON, *results(13.2)))

        assert answer.status == 200, answer.body
        assert answer.headers["etag"] == 'W/"1"'

    def test_new_results_have_the_same_patient(self, old: tuple[Integrator, str]) -> None:
        lab, subject = old
        answer = revise(lab, of("R-1", PERSON, *results(13.2, 6.1)))

        assert answer.status == 200, answer.body
        assert found(lab, f"Observation?patient={subject}") == 2
        (person,) = ids_in(lab.get(f"{BASE}/Patient?identifier={NATIONAL}|1"))
        assert f"Patient/{person}" != subject
        assert found(lab, f"Observation?patient={person}") == 2
        assert found(lab, f"DiagnosticReport?patient={person}") == 1
