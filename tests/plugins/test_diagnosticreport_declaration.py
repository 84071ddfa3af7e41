"""What reports and what comes with them are searched by, and which statuses they have."""

from __future__ import annotations

import pytest

from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from fhirpub_observation import OBSERVATION
from tests.plugins.declared_details import paths_of

MEMBERS = {part.name: part for part in DIAGNOSTIC_REPORT.parts if part.repeats}


def test_each_parameter_of_a_report_compares_the_elements_that_r4_names() -> None:
    assert paths_of(DIAGNOSTIC_REPORT.search) == {
        "category": "token category",
        "code": "token code",
        "date": "date effectiveDateTime effectivePeriod",
        "issued": "date issued",
        "subject": "reference subject",
        "performer": "reference performer",
        "results-interpreter": "reference resultsInterpreter",
        "result": "reference result",
        "specimen": "reference specimen",
        "based-on": "reference basedOn",
    }


def test_results_are_found_as_observations_are() -> None:
    found = paths_of(MEMBERS["observation"].search)

    assert found == {
        **paths_of(OBSERVATION.search),
        "specimen": "reference specimen",
        "based-on": "reference basedOn",
        "has-member": "reference hasMember",
        "derived-from": "reference derivedFrom",
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "specimen",
            {
                "type": "token type",
                "accession": "token accessionIdentifier",
                "collected": "date collection.collectedDateTime collection.collectedPeriod",
                "subject": "reference subject",
                "parent": "reference parent",
            },
        ),
        (
            "serviceRequest",
            {
                "instantiates-uri": "uri instantiatesUri",
                "category": "token category",
                "code": "token code",
                "authored": "date authoredOn",
                "subject": "reference subject",
                "requester": "reference requester",
            },
        ),
        (
            "practitioner",
            {
                "name": "string name",
                "family": "string name.family",
                "given": "string name.given",
            },
        ),
    ],
)
def test_each_parameter_of_a_member_compares_the_elements_that_r4_names(
    name: str, found: dict[str, str]
) -> None:
    assert paths_of(MEMBERS[name].search) == found


def test_a_member_is_registered_with_any_status_but_that_of_an_error() -> None:
    assert {name: " ".join(sorted(part.statuses)) for name, part in MEMBERS.items()} == {
        "observation": "amended cancelled corrected final preliminary registered unknown",
        "specimen": "",
        "serviceRequest": "active completed draft on-hold revoked unknown",
        "practitioner": "",
    }


def test_what_leads_from_one_member_to_another_leads_into_no_circle() -> None:
    assert {name: " ".join(part.acyclic) for name, part in MEMBERS.items()} == {
        "observation": "hasMember derivedFrom",
        "specimen": "parent",
        "serviceRequest": "basedOn replaces",
        "practitioner": "",
    }


def test_a_report_is_registered_with_a_status_of_its_beginning() -> None:
    assert " ".join(sorted(DIAGNOSTIC_REPORT.create_statuses)) == (
        "final partial preliminary registered unknown"
    )
    assert " ".join(sorted(DIAGNOSTIC_REPORT.update_statuses)) == (
        "amended appended cancelled corrected entered-in-error final partial preliminary unknown"
    )


def test_the_short_form_has_what_tells_one_report_from_another() -> None:
    assert " ".join(DIAGNOSTIC_REPORT.summary) == (
        "category code subject performer effectiveDateTime effectivePeriod issued conclusion"
    )
